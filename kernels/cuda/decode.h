/* Interface of a decode session (decode.cu) to the operations. While one of its tokens is issued,
 * attention takes its tiles from the session's device memory, which a kernel updates after every
 * token, and not from host descriptors of sequences. */
#ifndef TARE_KERNELS_CUDA_DECODE_H
#define TARE_KERNELS_CUDA_DECODE_H

#include "attention.cuh"

struct decode_view { /* the arguments of one attention */
    const struct attn_tile *tiles;
    const struct attn_parts *parts; /* [rows] */
    const int32_t *tables;
    int64_t rows, n_tiles, n_parts;
};

/* NULL: no token of a session is being issued. */
const struct decode_view *decode_current(void);

#endif
