#include "math.h"

#include <string.h>

static const char *const OPS[] = {
    [OP_ADD] = "+",        [OP_MUL] = "*",         [OP_POW] = "^",       [OP_ROOT] = "root",          [OP_FACT] = "!",
    [OP_BINOM] = "binom",  [OP_MOD] = "mod",       [OP_SUM] = "sum",     [OP_PROD] = "prod",          [OP_PM] = "+-",
    [OP_DEG] = "degrees",  [OP_PCT] = "percent",   [OP_UNIT] = "unit",   [OP_BASE] = "base",          [OP_TUPLE] = "tuple",
    [OP_SET] = "set",      [OP_LIST] = "list",     [OP_UNION] = "union", [OP_INTER] = "intersection", [OP_DIFF] = "minus",
    [OP_REL] = "relation", [OP_MATRIX] = "matrix", [OP_RATIO] = "ratio", [OP_INT] = "integral",       [OP_TEXT] = "text",
    [OP_WHERE] = "where",  [OP_OPTION] = "option", [OP_SAID] = "said"};
static const char *const CONSTANTS[] = {"?", "pi", "e", "i", "inf", "undefined", "empty", "R", "Z", "N", "Q", "C"};
static const char *const RELS[] = {"?",  "=",     "!=",     "<",  "<=", ">",   ">=",      "~",
                                   "in", "notin", "subset", "==", "->", "sim", "superset"};
static const char *const FUNCS[] = {"?",      "sin",    "cos",    "tan",  "cot",  "sec",  "csc",   "arcsin", "arccos", "arctan",
                                    "arccot", "arcsec", "arccsc", "sinh", "cosh", "tanh", "coth",  "sech",   "csch",   "arsinh",
                                    "arcosh", "artanh", "exp",    "ln",   "log",  "abs",  "floor", "ceil",   "max",    "min",
                                    "gcd",    "lcm",    "re",     "im",   "arg",  "conj", "sign"};

struct printer {
    const struct math *m;
    char *out;
    int64_t n, capacity;
    int depth;
};

static void put_text(struct printer *p, const char *s, int64_t n)
{
    for (int64_t i = 0; i < n && p->n < p->capacity; i++) p->out[p->n++] = s[i];
}

static void puts_(struct printer *p, const char *s)
{
    put_text(p, s, (int64_t)strlen(s));
}

static void print_tree(struct printer *p, int x)
{
    const struct math *m = p->m;
    const struct node *a = at(m, x);
    if (p->n >= p->capacity) return;
    if (a->op == OP_NUM) {
        if (a->aux) puts_(p, "-");
        put_text(p, a->n_digits ? m->pool + a->digits : "0", a->n_digits ? a->n_digits : 1);
        if (a->exp) {
            char e[24];
            int k = 24;
            for (int64_t v = a->exp < 0 ? -a->exp : a->exp; v; v /= 10) e[--k] = (char)('0' + v % 10);
            if (a->exp < 0) e[--k] = '-';
            puts_(p, "e");
            put_text(p, e + k, 24 - k);
        }
        return;
    }
    if (a->op == OP_SYM) {
        put_text(p, m->pool + m->symbol[a->aux].name, m->symbol[a->aux].n_name);
        return;
    }
    if (a->op == OP_CONST) {
        puts_(p, CONSTANTS[a->aux]);
        return;
    }
    puts_(p, "(");
    puts_(p, a->op == OP_FUNC ? FUNCS[a->aux] : OPS[a->op]);
    if (a->op == OP_TUPLE) puts_(p, a->aux & 1 ? " closed" : ""), puts_(p, a->aux & 2 ? " to-closed" : "");
    if (a->op == OP_UNIT || a->op == OP_TEXT) puts_(p, " '"), put_text(p, m->pool + a->digits, a->n_digits), puts_(p, "'");
    for (int i = 0; i < a->n; i++) {
        puts_(p, " ");
        print_tree(p, kid(m, x, i));
        if (a->op == OP_REL && i < a->n - 1) puts_(p, " "), puts_(p, RELS[(int)m->pool[a->digits + i]]);
    }
    puts_(p, ")");
}

int64_t print_node(const struct math *m, int x, char *out, int64_t capacity)
{
    struct printer p = {.m = m, .out = out, .capacity = capacity};
    if (x >= 0) print_tree(&p, x);
    return p.n;
}
