#include "lab/report/planning.h"

#include <math.h>

enum { SLICES = 1000 };
static const double EFFECT = 1; /* g, see planning.h */

static double normal_cdf(double x)
{
    return 0.5 * erfc(-x / sqrt(2));
}

/* Return the density of u = sqrt(chi^2_k / k). */
static double chi_density(double u, double k)
{
    if (u <= 0) return k > 1 ? 0 : exp(log(2) + k / 2 * log(k / 2) - lgamma(k / 2));
    return exp(log(2) + k / 2 * log(k / 2) - lgamma(k / 2) + (k - 1) * log(u) - k * u * u / 2);
}

/* Return E[f(u)] over u up to `end`, by Simpson's rule on an interval with all but 1e-14 of the
 * probability. */
static double expected_value(double (*f)(double u, const double *x), const double *x, double k, double end)
{
    const double width = 8 / sqrt(2 * k), most = fmin(end, 1 + width + 8 / k), least = fmax(0, 1 - width),
                 step = (most - least) / SLICES;
    double sum = 0;
    if (!(most > least)) return 0;
    for (int i = 0; i <= SLICES; i++) {
        const double u = least + step * i, weight = i == 0 || i == SLICES ? 1 : i % 2 ? 4 : 2;
        sum += weight * chi_density(u, k) * f(u, x);
    }
    return sum * step / 3;
}

static double rejection_probability(double u, const double *x) /* x: ncp, t_c */
{
    return normal_cdf(x[0] - x[1] * u) + normal_cdf(-x[0] - x[1] * u);
}

static double constant_one(double u, const double *x)
{
    (void)u, (void)x;
    return 1;
}

/* Return t with P(|T| > t) = alpha for k degrees of freedom. */
static double critical_t(double alpha, double k)
{
    double low = 0, high = 1e6;
    for (int i = 0; i < 100; i++) {
        const double middle = i < 20 ? sqrt((low + 1e-9) * high) : (low + high) / 2, x[2] = {0, middle};
        if (expected_value(rejection_probability, x, k, INFINITY) > alpha)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

double planning_power(double d, double s, int64_t n, double alpha)
{
    if (n < 2 || !(s > 0)) return n < 2 ? 0 : 1;
    const double k = (double)(n - 1), x[2] = {fabs(d) * sqrt((double)n) / s, critical_t(alpha, k)};
    return fmin(1, expected_value(rejection_probability, x, k, INFINITY));
}

int64_t planning_seeds(double d, double s, double alpha, double power)
{
    int64_t low = 1, high = 2;
    if (!(fabs(d) > 0)) return PLANNING_MOST + 1;
    while (high <= PLANNING_MOST && planning_power(d, s, high, alpha) < power) {
        low = high;
        high *= 2;
    }
    if (high > PLANNING_MOST) return PLANNING_MOST + 1;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (planning_power(d, s, middle, alpha) < power)
            low = middle;
        else
            high = middle;
    }
    return high;
}

double planning_deviation_bound(double s, int64_t m)
{
    if (m < 2) return INFINITY;
    double low = 0, high = 4;
    for (int i = 0; i < 100; i++) {
        const double middle = (low + high) / 2;
        if (expected_value(constant_one, NULL, (double)(m - 1), middle) < 0.2)
            low = middle;
        else
            high = middle;
    }
    return s / low;
}

double planning_anytime(double s, int64_t n, double alpha)
{
    if (n < 2) return INFINITY;
    const double k = (double)n, spread = 1 + k * EFFECT, c = exp((log(spread) / 2 - log(alpha)) * 2 / k);
    return c < spread ? s * sqrt((k - 1) / k * (c - 1) / (1 - c / spread)) : INFINITY;
}
