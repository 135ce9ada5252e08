/* Values of the C library's functions that numbers of a run pass through (docs/dev/performance.md),
 * for a comparison of two processors. Arguments are drawn from a fixed seed, half of them in the
 * range that tare uses and half of any magnitude.
 *
 *   libm COUNT                    a line for each function and block of 10000 arguments, with a
 *                                 checksum of the values
 *   libm COUNT FUNCTION BLOCK     the arguments and values of that block */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 10000 };

static uint64_t random_word(uint64_t n) /* SplitMix64 */
{
    uint64_t z = (n + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static double one(double (*f)(double), double x)
{
    return f(x);
}

static const struct function {
    const char *name;
    double (*of)(double);
    double (*of_two)(double, double);
    double low, high;   /* the range that tare uses */
    double low2, high2; /* of the second argument */
    int signs;          /* negative arguments have values, too */
} functions[] = {
    {.name = "exp", .of = exp, .low = -30, .high = 30, .signs = 1},
    {.name = "log", .of = log, .low = 0, .high = 1},
    {.name = "log1p", .of = log1p, .low = 0, .high = 1},
    {.name = "cos", .of = cos, .low = 0, .high = 131072, .signs = 1},
    {.name = "sin", .of = sin, .low = 0, .high = 131072, .signs = 1},
    {.name = "exp2", .of = exp2, .low = -30, .high = 0, .signs = 1},
    {.name = "pow", .of_two = pow, .low = 0.9, .high = 1, .low2 = 1, .high2 = 1000},
    {.name = "pow_theta", .of_two = pow, .low = 1e4, .high = 1e7, .low2 = -1, .high2 = 0},
    {.name = "log2", .of = log2, .low = 1, .high = 1e6},
    {.name = "log10", .of = log10, .low = 1e-9, .high = 1e6},
    {.name = "cbrt", .of = cbrt, .low = 1, .high = 1e6, .signs = 1},
    {.name = "erfc", .of = erfc, .low = -6, .high = 6, .signs = 1},
    {.name = "lgamma", .of = lgamma, .low = 0.5, .high = 1000},
};

static double any(uint64_t word, int signs) /* of a magnitude from 2^-30 to 2^30 */
{
    const double x = ldexp(1 + (double)(word >> 12) * 0x1p-52, (int)(word % 60) - 30);
    return signs && word >> 11 & 1 ? -x : x;
}

static double drawn(uint64_t n, double low, double high, int signs)
{
    const uint64_t word = random_word(n);
    return n & 2 ? any(word, signs) : low + (high - low) * (double)(word >> 11) * 0x1p-53;
}

static void block(const struct function *f, int64_t index, int print)
{
    uint64_t sum = 0;
    for (int64_t i = 0; i < BLOCK; i++) {
        const uint64_t at = 4 * (uint64_t)(index * BLOCK + i) + 2 * (uint64_t)(i & 1);
        const double x = drawn(at, f->low, f->high, f->signs), y = f->of ? 0 : drawn(at + 1, f->low2, f->high2, 1);
        double value = f->of ? one(f->of, x) : f->of_two(x, y);
        uint64_t bits;
        if (value != value) value = 0; /* the sign of a NaN is the processor's */
        memcpy(&bits, &value, sizeof bits);
        sum = (sum ^ bits) * 0x100000001b3u + (sum >> 32);
        if (print) printf("%s(%a, %a) = %a\n", f->name, x, y, value);
    }
    if (!print) printf("%s %" PRId64 " %016" PRIx64 "\n", f->name, index, sum);
}

int main(int argc, char **argv)
{
    const int64_t blocks = argc > 1 ? atoll(argv[1]) / BLOCK : 0;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        const struct function *f = &functions[i];
        if (argc == 4) {
            if (!strcmp(f->name, argv[2])) block(f, atoll(argv[3]), 1);
            continue;
        }
        for (int64_t j = 0; j < blocks; j++) block(f, j, 0);
    }
    return blocks < 1;
}
