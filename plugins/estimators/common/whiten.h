/* Whitening over a batch from sums that the host adds over all ranks: x -> (x - mean) * rate.
 *
 *   convention   mean            variance                              rate
 *   verl         S1/(n + 1e-8)   sum (x-mean)^2/(n + 1e-8) * n/(n-1)   1/sqrt(variance + 1e-8)
 *   skyrl        S1/n            sum (x-mean)^2/n * n/(n-1)            1/sqrt(variance + 1e-8)
 *   nemo         S1/n            sum (x-mean)^2/n                      1/sqrt(max(variance, 1e-8))
 *   (OpenRLHF too)
 *
 * with n, S1, S2 the sums of 1, x, x^2. A variance that is only the rounding of S2 - S1^2/n counts
 * as 0, so equal values give exactly 0 (except in convention verl, whose mean is off by 1e-8). */
#ifndef TARE_ESTIMATORS_WHITEN_H
#define TARE_ESTIMATORS_WHITEN_H

#include <math.h>
#include <stdint.h>

enum { WHITEN_VERL, WHITEN_SKYRL, WHITEN_NEMO, WHITEN_OPENRLHF };
enum { WHITEN_N, WHITEN_S1, WHITEN_S2, WHITEN_SUMS };

struct whiten {
    double mean, rate;
};

static inline struct whiten whiten_of(const double *sum, int64_t convention)
{
    const double n = sum[WHITEN_N], S1 = sum[WHITEN_S1], S2 = sum[WHITEN_S2];
    if (!(n > 0)) return (struct whiten){0, 0};
    const double count = convention == WHITEN_VERL ? n + 1e-8 : n;
    const double exact = S1 / n, mean = S1 / count;
    double spread = S2 - S1 * exact; /* sum (x - S1/n)^2 */
    if (spread < 1e-13 * S2) spread = 0;
    double variance = (spread + n * (exact - mean) * (exact - mean)) / count;
    if (convention == WHITEN_NEMO || convention == WHITEN_OPENRLHF) return (struct whiten){mean, 1 / sqrt(fmax(variance, 1e-8))};
    if (n > 1) variance *= n / (n - 1);
    return (struct whiten){mean, 1 / sqrt(variance + 1e-8)};
}

#endif
