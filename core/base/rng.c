#include "base/rng.h"

#include <math.h>

/* splitmix64's finaliser: spreads seeds and ids over all bits */
static uint64_t mix_bits(uint64_t x)
{
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

static struct rng_key key_of(uint64_t x)
{
    return (struct rng_key){{(uint32_t)x, (uint32_t)(x >> 32)}};
}

struct rng_key rng_key(uint64_t seed, enum rng_purpose purpose)
{
    return key_of(mix_bits(mix_bits(seed) ^ (uint64_t)purpose));
}

struct rng_key rng_derive(struct rng_key key, uint64_t word)
{
    return key_of(mix_bits(((uint64_t)key.k[1] << 32 | key.k[0]) ^ mix_bits(word)));
}

void rng_block(struct rng_key key, uint64_t counter_low, uint64_t counter_high, uint32_t out[4])
{
    uint32_t c0 = (uint32_t)counter_low, c1 = (uint32_t)(counter_low >> 32);
    uint32_t c2 = (uint32_t)counter_high, c3 = (uint32_t)(counter_high >> 32);
    uint32_t k0 = key.k[0], k1 = key.k[1];
    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        const uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

static double unit_interval(uint32_t low, uint32_t high)
{
    return (double)(((uint64_t)high << 32 | low) >> 11) * 0x1p-53;
}

double rng_uniform(struct rng_key key, uint64_t counter_low, uint64_t counter_high)
{
    uint32_t w[4];
    rng_block(key, counter_low, counter_high, w);
    return unit_interval(w[0], w[1]);
}

uint64_t rng_below(struct rng_key key, uint64_t counter, uint64_t n)
{
    uint32_t w[4];
    rng_block(key, counter, 0, w);
    return (uint64_t)(((unsigned __int128)((uint64_t)w[1] << 32 | w[0]) * n) >> 64);
}

double rng_normal(struct rng_key key, uint64_t counter)
{
    uint32_t w[4];
    rng_block(key, counter, 0, w);
    return sqrt(-2 * log(1 - unit_interval(w[0], w[1]))) * cos(6.283185307179586476925 * unit_interval(w[2], w[3]));
}

void rng_shuffle(struct rng_key key, int64_t *order, int64_t n)
{
    for (int64_t i = n - 1; i > 0; i--) {
        const int64_t j = (int64_t)rng_below(key, (uint64_t)i, (uint64_t)i + 1);
        const int64_t t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
}
