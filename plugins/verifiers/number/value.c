/* Exact values: rational numbers of any length. */
#include "number.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_FRACTION_DIGITS = 50000 }; /* products are quadratic: longer fractions are refused */

static void digits_tidy(struct digits *x)
{
    while (x->n && x->d[x->n - 1] == '0') {
        x->n--;
        x->exponent++;
    }
    int64_t zeros = 0;
    while (zeros < x->n && x->d[zeros] == '0') zeros++;
    if (zeros) memmove(x->d, x->d + zeros, (size_t)(x->n - zeros));
    x->n -= zeros;
    if (!x->n) x->exponent = 0;
}

/* 1: read; 0: the exponent has more than 15 digits; -1: no memory */
static int digits_read(tare_text t, char decimal, struct digits *out)
{
    *out = (struct digits){.d = malloc((size_t)t.size + 1)};
    if (!out->d) return -1;
    bool point = false;
    int64_t i = 0;
    for (; i < t.size && t.data[i] != 'e' && t.data[i] != 'E'; i++) {
        if (t.data[i] == decimal) point = true;
        if (!text_is_digit(t.data[i])) continue;
        out->d[out->n++] = t.data[i];
        out->exponent -= point;
    }
    if (i < t.size) {
        const bool minus = t.data[++i] == '-';
        i += minus || t.data[i] == '+';
        while (i < t.size - 1 && t.data[i] == '0') i++;
        if (t.size - i > 15) return 0;
        int64_t e = 0;
        for (; i < t.size; i++) e = e * 10 + (t.data[i] - '0');
        out->exponent += minus ? -e : e;
    }
    digits_tidy(out);
    return 1;
}

enum { LIMB = 9, BASE = 1000000000 };

/* limbs of 9 digits, least significant first; NULL: no memory */
static uint32_t *limbs_of(const struct digits *x, int64_t *n)
{
    *n = x->n / LIMB + 1;
    uint32_t *limb = calloc((size_t)*n, sizeof *limb);
    if (limb)
        for (int64_t i = 0; i < x->n; i++) { /* digit i has weight 10^(n-1-i) */
            uint32_t *l = &limb[(x->n - 1 - i) / LIMB];
            *l = *l * 10 + (uint32_t)(x->d[i] - '0');
        }
    return limb;
}

static bool digits_from_limbs(const uint32_t *limb, int64_t n, int64_t exponent, struct digits *out)
{
    *out = (struct digits){.d = malloc((size_t)(n * LIMB)), .n = n * LIMB, .exponent = exponent};
    if (!out->d) return false;
    for (int64_t i = 0; i < n; i++) {
        uint32_t v = limb[i];
        for (int k = 0; k < LIMB; k++, v /= 10) out->d[out->n - 1 - i * LIMB - k] = (char)('0' + v % 10);
    }
    digits_tidy(out);
    return true;
}

static bool digits_mul(const struct digits *a, const struct digits *b, struct digits *out)
{
    int64_t na, nb;
    uint32_t *x = limbs_of(a, &na), *y = limbs_of(b, &nb), *z = x && y ? calloc((size_t)(na + nb), sizeof *z) : NULL;
    if (z)
        for (int64_t i = 0; i < na; i++) {
            uint64_t carry = 0;
            for (int64_t j = 0; j < nb; j++) {
                const uint64_t v = z[i + j] + (uint64_t)x[i] * y[j] + carry;
                z[i + j] = (uint32_t)(v % BASE);
                carry = v / BASE;
            }
            z[i + nb] = (uint32_t)carry;
        }
    const bool ok = z && digits_from_limbs(z, na + nb, a->exponent + b->exponent, out);
    free(x);
    free(y);
    free(z);
    return ok;
}

/* *a += b, for integers */
static bool digits_add(struct digits *a, const struct digits *b)
{
    const struct digits *in[2] = {a, b};
    struct digits full[2] = {{0}}, sum = {0};
    uint32_t *limb[2] = {NULL, NULL};
    int64_t n[2] = {0, 0};
    for (int k = 0; k < 2; k++) { /* append the zeros of the exponent */
        full[k] = (struct digits){.d = malloc((size_t)(in[k]->n + in[k]->exponent + 1)), .n = in[k]->n + in[k]->exponent};
        if (!full[k].d) continue;
        memcpy(full[k].d, in[k]->d, (size_t)in[k]->n);
        memset(full[k].d + in[k]->n, '0', (size_t)in[k]->exponent);
        limb[k] = limbs_of(&full[k], &n[k]);
    }
    const int64_t size = (n[0] > n[1] ? n[0] : n[1]) + 1;
    uint32_t *z = limb[0] && limb[1] ? calloc((size_t)size, sizeof *z) : NULL;
    uint32_t carry = 0;
    if (z)
        for (int64_t i = 0; i < size; i++) {
            const uint32_t v = (i < n[0] ? limb[0][i] : 0) + (i < n[1] ? limb[1][i] : 0) + carry;
            z[i] = v % BASE;
            carry = v / BASE;
        }
    const bool ok = z && digits_from_limbs(z, size, 0, &sum);
    if (ok) {
        free(a->d);
        *a = sum;
    }
    for (int k = 0; k < 2; k++) {
        free(full[k].d);
        free(limb[k]);
    }
    free(z);
    return ok;
}

void rational_free(struct rational *r)
{
    free(r->num.d);
    free(r->den.d);
}

int rational_read(const struct written *w, const struct options *o, struct rational *r)
{
    *r = (struct rational){.negative = w->negative};
    if (!w->readable) return 0;
    if (w->den.size && w->whole.size + w->num.size + w->den.size > MAX_FRACTION_DIGITS) return 0;
    int got = digits_read(w->num, w->point, &r->num);
    if (got > 0) got = digits_read(w->den.size ? w->den : text_of("1"), '.', &r->den);
    if (got > 0 && !r->den.n) got = 0;
    if (got > 0 && w->whole.size) {
        struct digits whole, product = {0};
        got = digits_read(w->whole, '.', &whole);
        if (got > 0 && (whole.exponent < 0 || r->num.exponent < 0 || r->den.exponent < 0 || whole.exponent > MAX_FRACTION_DIGITS ||
                        r->num.exponent > MAX_FRACTION_DIGITS || r->den.exponent > MAX_FRACTION_DIGITS))
            got = 0;
        if (got > 0 && !(digits_mul(&whole, &r->den, &product) && digits_add(&r->num, &product))) got = -1;
        free(whole.d);
        free(product.d);
    }
    if (got > 0 && r->num.n) r->num.exponent += w->shift - (w->percent && o->hundredth ? 2 : 0);
    return got;
}

static bool digits_equal(const struct digits *a, const struct digits *b)
{
    return a->n == b->n && a->exponent == b->exponent && (!a->n || !memcmp(a->d, b->d, (size_t)a->n));
}

bool rational_is_whole(const struct rational *r)
{
    return r->num.exponent >= 0 && r->den.n == 1 && r->den.d[0] == '1' && !r->den.exponent;
}

int rational_equal(const struct rational *a, const struct rational *b)
{
    if (!a->num.n || !b->num.n) return !a->num.n && !b->num.n;
    if (a->negative != b->negative) return 0;
    if (digits_equal(&a->den, &b->den)) return digits_equal(&a->num, &b->num);
    struct digits ad = {0}, cb = {0};
    const int equal = digits_mul(&a->num, &b->den, &ad) && digits_mul(&b->num, &a->den, &cb) ? digits_equal(&ad, &cb) : -1;
    free(ad.d);
    free(cb.d);
    return equal;
}
