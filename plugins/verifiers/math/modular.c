/* Identities of rational functions over Q(symbols, pi): equality at random points modulo a 61-bit
 * prime (Schwartz, Zippel). Nothing is expanded. A nonzero polynomial of degree d vanishes at a
 * point with probability d / p, at all of them with (d/p)^POINTS. p = 2^61 - 31 has a square root
 * of -1, which represents i. The points are derived from the symbols' numbers, so a verdict is
 * reproducible. */
#include "flint.h"

enum { POINTS = 4, TRIES = 12 };
static const uint64_t P = 2305843009213693921ULL, ROOT_OF_MINUS_1 = 583529827753931384ULL;

static uint64_t multiply_mod(uint64_t a, uint64_t b)
{
    return (uint64_t)((unsigned __int128)a * b % P);
}

static uint64_t pow_mod(uint64_t a, uint64_t e)
{
    uint64_t r = 1;
    for (; e; e >>= 1, a = multiply_mod(a, a))
        if (e & 1) r = multiply_mod(r, a);
    return r;
}

static uint64_t scramble_bits(uint64_t x)
{
    x += 0x9E3779B97F4A7C15ULL;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ x >> 27) * 0x94D049BB133111EBULL;
    return x ^ x >> 31;
}

bool modular_is_rational(const struct math *m, int x)
{
    const struct node *a = at(m, x);
    switch (a->op) {
    case OP_NUM:
        return a->n_digits + (a->exp < 0 ? -a->exp : a->exp) < 100000;
    case OP_SYM:
        return true;
    case OP_CONST:
        return a->aux == C_PI || a->aux == C_I;
    case OP_DEG:
        return modular_is_rational(m, kid(m, x, 0));
    case OP_POW: {
        int64_t e;
        return small_int(m, kid(m, x, 1), &e) && modular_is_rational(m, kid(m, x, 0));
    }
    case OP_ADD:
    case OP_MUL:
        for (int i = 0; i < a->n; i++)
            if (!modular_is_rational(m, kid(m, x, i))) return false;
        return true;
    default:
        return false;
    }
}

static uint64_t residue_number(const struct math *m, const struct node *a)
{
    uint64_t r = 0;
    for (int i = 0; i < a->n_digits; i++) r = (multiply_mod(r, 10) + (uint64_t)(m->pool[a->digits + i] - '0')) % P;
    if (a->exp) r = multiply_mod(r, pow_mod(a->exp < 0 ? pow_mod(10, P - 2) : 10, (uint64_t)(a->exp < 0 ? -a->exp : a->exp)));
    return a->aux && r ? P - r : r;
}

/* false: a division by zero at this point */
static bool residue_of(struct math *m, int x, uint64_t *out)
{
    struct values *v = m->values;
    const struct node *a = at(m, x);
    if (v->residue_stamp[x] == v->epoch) return *out = v->residue[x], true;
    if (!spend(m, 1)) return false;
    uint64_t r = 0, k;
    switch (a->op) {
    case OP_NUM:
        r = residue_number(m, a);
        break;
    case OP_SYM:
        r = v->symbol_residue[a->aux];
        break;
    case OP_CONST:
        r = a->aux == C_I ? ROOT_OF_MINUS_1 : scramble_bits(v->epoch * 131ULL + 977) % P;
        break;
    case OP_DEG:
        if (!residue_of(m, kid(m, x, 0), &r)) return false;
        break;
    case OP_ADD:
    case OP_MUL:
        r = a->op == OP_MUL;
        for (int i = 0; i < a->n; i++) {
            if (!residue_of(m, kid(m, x, i), &k)) return false;
            r = a->op == OP_MUL ? multiply_mod(r, k) : (r + k) % P;
        }
        break;
    default: { /* OP_POW */
        int64_t e = 0;
        if (!residue_of(m, kid(m, x, 0), &r) || !small_int(m, kid(m, x, 1), &e)) return false;
        if (!r && e <= 0) return false;
        r = pow_mod(e < 0 ? pow_mod(r, P - 2) : r, (uint64_t)(e < 0 ? -e : e));
    }
    }
    v->residue[x] = *out = r;
    v->residue_stamp[x] = v->epoch;
    return true;
}

static void next_point(struct math *m, int try)
{
    m->values->epoch++;
    for (int s = 0; s < m->n_symbols; s++) m->values->symbol_residue[s] = scramble_bits((uint64_t)(s * 64 + try + 1)) % P;
    for (int s = 0; s < m->n_symbols; s++)
        if (m->alias[s]) m->values->symbol_residue[s] = m->values->symbol_residue[m->alias[s] - 1];
}

enum truth modular_equal(struct math *m, int a, int b)
{
    int points = 0;
    for (int try = 0; try < TRIES && points < POINTS; try++) {
        uint64_t x, y;
        next_point(m, try);
        if (!residue_of(m, a, &x) || !residue_of(m, b, &y)) continue;
        if (x != y) return NO;
        points++;
    }
    return points == POINTS ? YES : UNKNOWN;
}

enum truth modular_proportional(struct math *m, int p, int q)
{
    int points = 0;
    uint64_t p0 = 0, q0 = 0;
    for (int try = 0; try < TRIES && points <= POINTS; try++) {
        uint64_t x, y;
        next_point(m, try);
        if (!residue_of(m, p, &x) || !residue_of(m, q, &y)) continue;
        /* one is zero but not the other, or both are: at random points this happens only for
         * constants */
        if (!x || !y) {
            if (x != y) return NO;
            continue;
        }
        if (!points)
            p0 = x, q0 = y;
        else if (multiply_mod(x, q0) != multiply_mod(y, p0))
            return NO;
        points++;
    }
    return points > POINTS ? YES : UNKNOWN;
}
