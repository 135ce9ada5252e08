/* Finds the groups of a step: the rollouts of each prompt. */
#include "lab/audit/internal.h"

#include <stdlib.h>
#include <string.h>

struct keyed {
    uint64_t key;
    int64_t at, first; /* the row; the first row with this key */
};

static int by_key(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    return x->key != y->key ? (x->key > y->key) - (x->key < y->key) : (x->at > y->at) - (x->at < y->at);
}

static int by_first(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    return x->first != y->first ? (x->first > y->first) - (x->first < y->first) : (x->at > y->at) - (x->at < y->at);
}

static uint64_t hash_of(tare_text t)
{
    return fs_hash(t.data ? t.data : "", t.size, 0);
}

static void key_rows(const struct audit *a, const struct audit_step *s, struct keyed *k)
{
    uint64_t run = 0;
    for (int64_t i = 0; i < s->n; i++) {
        const struct audit_row *r = &s->row[i];
        const char *key = r->group_key;
        const uint64_t own = key ? fs_hash(key, (int64_t)strlen(key), 0) : hash_of(r->prompt);
        k[i] = (struct keyed){.key = own, .at = i};
        if (a->map.grouping != GROUPS_IN_ORDER || key) continue;
        if (i && hash_of(s->row[i - 1].prompt) != own) run++;
        k[i].key = run;
    }
}

/* Orders rows so that equal keys are adjacent, by the first row of each key. */
static void order_rows(struct keyed *k, int64_t n)
{
    qsort(k, (size_t)n, sizeof *k, by_key);
    for (int64_t i = 0; i < n; i++) k[i].first = i && k[i].key == k[i - 1].key ? k[i - 1].first : k[i].at;
    qsort(k, (size_t)n, sizeof *k, by_first);
}

static int64_t length_of(const struct keyed *k, int64_t n, int64_t at)
{
    int64_t size = 1;
    while (at + size < n && k[at + size].first == k[at].first) size++;
    return size;
}

/* Returns the number of rollouts that most prompts have, the smallest of equally frequent ones. */
static tare_status most_common(const struct keyed *k, int64_t n, struct arena *arena, int64_t *out, struct err *e)
{
    int64_t *count, best = 0;
    TRY(arena_new(arena, &count, n + 1, e));
    for (int64_t i = 0; i < n;) {
        const int64_t size = length_of(k, n, i);
        count[size]++;
        i += size;
    }
    for (int64_t size = 1; size <= n; size++)
        if (!best || count[size] > count[best]) best = count[size] ? size : best;
    *out = best;
    return TARE_OK;
}

static tare_status settle_size(struct audit *a, const struct keyed *k, int64_t n, struct err *e)
{
    const struct config *c = a->o->config;
    if (a->group_size) return TARE_OK;
    if (strcmp(config_where(c, "rollout", "group_size"), "default") != 0) {
        a->group_size = c->rollout.group_size;
        return TARE_OK;
    }
    return most_common(k, n, &a->step, &a->group_size, e);
}

/* True if a curriculum may give prompts different numbers of rollouts, which only a run's
 * configuration shows. */
static bool sizes_vary(const struct audit *a)
{
    return a->own && strcmp(a->o->config->curriculum.plugin, "shuffle") != 0;
}

static tare_status tell_size(struct audit *a, struct audit_step *s, int64_t m, struct err *e)
{
    const int64_t i = s->order[s->begin[m]], n = s->begin[m + 1] - s->begin[m];
    const char *says, *expected;
    TRY(audit_format(a, &says, e, "%lld rollout%s of this prompt", (long long)n, n == 1 ? "" : "s"));
    TRY(audit_format(a, &expected, e, "%lld", (long long)a->group_size));
    for (int64_t k = s->begin[m]; k < s->begin[m + 1]; k++)
        TRY(audit_add_finding(a, s, s->order[k],
                              (struct finding){.column = AUDIT_GROUP,
                                               .says = says,
                                               .expected = expected,
                                               .text = a->map.grouping == GROUPS_IN_ORDER && !s->row[i].group_key
                                                           ? "incomplete group: the rows of a prompt must be consecutive"
                                                           : "incomplete group"},
                              e));
    return TARE_OK;
}

/* A prompt that occurs twice in a step has twice the rollouts, which form two groups in their
 * order. */
tare_status groups_find(struct audit *a, struct audit_step *s, struct err *e)
{
    struct keyed *k;
    TRY(arena_new(&a->step, &k, s->n, e));
    TRY(arena_new(&a->step, &s->order, s->n, e));
    TRY(arena_new(&a->step, &s->begin, s->n + 1, e));
    TRY(arena_new(&a->step, &s->whole, s->n, e));
    key_rows(a, s, k);
    order_rows(k, s->n);
    TRY(settle_size(a, k, s->n, e));
    const int64_t G = a->group_size;
    const bool vary = sizes_vary(a);
    s->n_groups = 0;
    for (int64_t i = 0; i < s->n;) {
        const int64_t size = length_of(k, s->n, i), part = vary || size % G ? size : G;
        for (int64_t j = 0; j < size; j++) {
            if (j % part == 0) {
                s->begin[s->n_groups] = i + j;
                s->whole[s->n_groups++] = vary || size % G == 0;
            }
            s->order[i + j] = k[i + j].at;
            s->row[k[i + j].at].group = s->n_groups - 1;
        }
        i += size;
    }
    s->begin[s->n_groups] = s->n;
    a->checked[AUDIT_GROUP] += s->n;
    for (int64_t m = 0; m < s->n_groups; m++)
        if (!s->whole[m]) TRY(tell_size(a, s, m, e));
    return TARE_OK;
}
