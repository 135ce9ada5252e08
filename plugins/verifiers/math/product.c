/* Products of vectors and matrices that are only named (\vec u, \mathbf A) keep their order: they become one symbol, whose name
 * holds the names of the factors. Other factors commute with it. */
#include "parser.h"

#include <string.h>

static bool is_ordered(const struct parser *p, int start, int x)
{
    const struct node *a = at(p->m, x);
    if (a->op != OP_SYM) return false;
    const char *name = p->m->pool + p->m->symbol[a->aux].name;
    return (p->t == start + 1 && p->m->tokens[start].aux == SYM_ORDERED) || (*name == '<' && p->m->symbol[a->aux].n_name > 1);
}

/* u . v is v . u; u x v is not v x u */
static int ordered_pair(struct parser *p, int a, int b, char sign)
{
    struct math *m = p->m;
    char name[140];
    int n = 0;
    for (int k = 0; k < 2; k++) {
        const int s = at(m, k ? b : a)->aux, size = m->symbol[s].n_name;
        if (n + size + 3 > (int)sizeof name) return parse_fail(p, "a long product of vectors");
        name[n++] = k ? sign : '<';
        memcpy(name + n, m->pool + m->symbol[s].name, (size_t)size);
        n += size;
    }
    name[n++] = '>';
    return mk_sym(m, name, n);
}

static int by_name(const struct math *m, int a, int b)
{
    const int s = at(m, a)->aux, t = at(m, b)->aux, n = m->symbol[s].n_name, k = m->symbol[t].n_name;
    const int order = memcmp(m->pool + m->symbol[s].name, m->pool + m->symbol[t].name, (size_t)(n < k ? n : k));
    return order ? order : n - k;
}

void product_add(struct parser *p, struct product *x, int start, int y, char sign)
{
    struct math *m = p->m;
    if (y < 0 || x->scalar < 0) {
        x->scalar = -1;
        return;
    }
    if (sign > x->sign) x->sign = sign;
    if (!is_ordered(p, start, y)) {
        x->scalar = mk_mul(m, x->scalar, y);
        return;
    }
    if (x->ordered < 0) {
        x->ordered = y;
    } else if (x->ordered == y && x->sign != 'x') {
        x->scalar = mk_mul(m, x->scalar, mk_mul(m, y, y)), x->ordered = -1;
    } else {
        const bool swap = x->sign == '.' && by_name(m, x->ordered, y) > 0;
        x->ordered = ordered_pair(p, swap ? y : x->ordered, swap ? x->ordered : y, x->sign);
        if (x->ordered < 0) x->scalar = -1;
    }
    x->sign = ' ';
}

int product_value(struct math *m, const struct product *x)
{
    return x->scalar < 0 || x->ordered < 0 ? x->scalar : mk_mul(m, x->scalar, x->ordered);
}

struct product product_begin(struct parser *p, int start, int x)
{
    const bool ordered = x >= 0 && is_ordered(p, start, x);
    return (struct product){.scalar = ordered ? mk_int(p->m, 1) : x, .ordered = ordered ? x : -1, .sign = ' '};
}
