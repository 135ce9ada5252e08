/* What the operations see of a decode session (decode.cu): while one of its tokens is issued, attention takes its tiles from the session's device
 * memory, which a kernel renews after every token, and not from sequences of the host. */
#ifndef TARE_KERNELS_CUDA_DECODE_H
#define TARE_KERNELS_CUDA_DECODE_H

#include "attention.cuh"

struct decode_view { /* what one attention works on */
    const struct attn_tile *tiles;
    const struct attn_parts *parts; /* [rows] */
    const int32_t *tables;
    int64_t rows, n_tiles, n_parts;
};

/* NULL: no token of a session is being issued. */
const struct decode_view *decode_current(void);

#endif
