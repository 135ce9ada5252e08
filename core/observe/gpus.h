/* NVIDIA GPUs as /proc, /sys, /dev and the environment describe them, without CUDA: rows for `tare
 * doctor` that explain why a first run on several GPUs fails or is slow. */
#ifndef TARE_CORE_OBSERVE_GPUS_H
#define TARE_CORE_OBSERVE_GPUS_H

#include <stdbool.h>
#include <stdint.h>

enum gpus_state { GPUS_OK, GPUS_NO, GPUS_BAD };

/* Called for each row; what and text are valid during the call. */
typedef void (*gpus_row)(void *ctx, enum gpus_state state, const char *what, const char *text);

struct gpus_wanted {
    const char *root; /* "" or a folder that contains proc/, sys/ and dev/ */
    bool cuda;        /* the configuration runs on GPUs; without it a machine without a driver has no rows */
    int64_t ranks;    /* of the configuration */
};
void gpus_report(const struct gpus_wanted *wanted, gpus_row row, void *ctx);

/* Number of GPUs that CUDA_VISIBLE_DEVICES leaves of n; visible NULL: all. Like CUDA it ends at the
 * first invalid entry. */
int64_t gpus_visible(const char *visible, int64_t n);

#endif
