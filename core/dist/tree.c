#include "dist/comm.h"

#include <string.h>

enum { BLOCK = 512 };

/* out[n] = the tree over in[first .. first+span-1] (those below count) at offset `at`; span is a power of two. */
static void tree_block(const float *const *in, int count, int first, int span, int64_t at, int64_t n, float *out)
{
    while (span > 1 && first + span / 2 >= count) span /= 2;
    if (span == 1) {
        memcpy(out, in[first] + at, (size_t)n * sizeof(float));
    } else if (span == 2) {
        const float *a = in[first] + at, *b = in[first + 1] + at;
        for (int64_t i = 0; i < n; i++) out[i] = a[i] + b[i];
    } else {
        float right[BLOCK];
        tree_block(in, count, first, span / 2, at, n, out);
        tree_block(in, count, first + span / 2, span / 2, at, n, right);
        for (int64_t i = 0; i < n; i++) out[i] += right[i];
    }
}

void comm_tree_sum(const float *const *in, int count, int64_t n, float *out)
{
    int span = 1;
    while (span < count) span *= 2;
    for (int64_t at = 0; at < n; at += BLOCK) {
        float sum[BLOCK]; /* out may be an input that is still to be read */
        const int64_t m = n - at < BLOCK ? n - at : BLOCK;
        tree_block(in, count, 0, span, at, m, sum);
        memcpy(out + at, sum, (size_t)m * sizeof(float));
    }
}
