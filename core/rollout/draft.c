#include "rollout/draft.h"

#include "base/arena.h"

#include <string.h>

/* SUFFIX_MOST, SUFFIX_LEAST: lengths that are looked up. TABLE: a power of two. RUN_MOST: longest
 * match that is measured. TRIES: after so many the counts of a class are halved. */
enum { SUFFIX_MOST = 4, SUFFIX_LEAST = 2, TABLE = 1 << 17, RUN_MOST = 32, CLASSES = 5, TRIES = 32 };

/* Where a suffix ended: the next token is ids[at] of a source. at 0: empty */
struct place {
    int32_t source, at;
};

struct source {
    int64_t handle, used; /* used: time of the last use */
    uint64_t group;
    int32_t *ids;
    int64_t n, capacity;
    struct place match; /* of its last `run` tokens; at 0: none */
    int64_t run;
    /* Predictions by class of `run`: all, and those that came true. */
    int32_t tried[CLASSES], right[CLASSES];
};

struct drafts {
    struct source sources[DRAFT_SOURCES];
    int64_t clock;
    struct place table[TABLE];
};

tare_status drafts_new(struct drafts **out, struct err *e)
{
    return mem_new((int64_t)sizeof **out, (void **)out, e);
}

void drafts_free(struct drafts *d)
{
    if (!d) return;
    for (int i = 0; i < DRAFT_SOURCES; i++) mem_free(d->sources[i].ids);
    mem_free(d);
}

void drafts_clear(struct drafts *d)
{
    if (!d->clock) return;
    for (int i = 0; i < DRAFT_SOURCES; i++)
        d->sources[i] = (struct source){.ids = d->sources[i].ids, .capacity = d->sources[i].capacity};
    memset(d->table, 0, sizeof d->table);
    d->clock = 0;
}

int64_t drafts_open(struct drafts *d, uint64_t group)
{
    int64_t oldest = 0;
    for (int64_t i = 1; i < DRAFT_SOURCES; i++)
        if (d->sources[i].used < d->sources[oldest].used) oldest = i;
    struct source *s = &d->sources[oldest];
    d->clock++;
    *s = (struct source){
        .handle = d->clock * DRAFT_SOURCES + oldest, .used = d->clock, .group = group, .ids = s->ids, .capacity = s->capacity};
    return s->handle;
}

int64_t drafts_length(struct drafts *d, int64_t handle)
{
    struct source *s = &d->sources[handle % DRAFT_SOURCES];
    if (!handle || s->handle != handle) return -1;
    s->used = ++d->clock;
    return s->n;
}

/* ---- matches */

static struct place *table_at(struct drafts *d, uint64_t group, const int32_t *ids, int64_t n)
{
    uint64_t h = group + (uint64_t)n;
    for (int64_t i = 0; i < n; i++) h = (h ^ (uint32_t)ids[i]) * UINT64_C(0x9e3779b97f4a7c15);
    return &d->table[h >> 32 & (TABLE - 1)];
}

/* Enters the suffixes of s that end before its newest token. */
static void index_suffixes(struct drafts *d, const struct source *s)
{
    const int64_t at = s->n - 1;
    for (int64_t n = SUFFIX_LEAST; n <= SUFFIX_MOST && n <= at; n++)
        *table_at(d, s->group, s->ids + at - n, n) = (struct place){(int32_t)(s - d->sources), (int32_t)at};
}

/* Returns the number of tokens before p that are equal to the last ones of s. */
static int64_t match_length(const struct drafts *d, const struct source *s, struct place p)
{
    const struct source *from = &d->sources[p.source];
    int64_t n = 0;
    if (!p.at || from->group != s->group || p.at >= from->n) return 0;
    while (n < RUN_MOST && n < p.at && n < s->n && from->ids[p.at - 1 - n] == s->ids[s->n - 1 - n]) n++;
    return n;
}

static void find_match(struct drafts *d, struct source *s)
{
    s->match = (struct place){0};
    for (int64_t n = SUFFIX_MOST; n >= SUFFIX_LEAST && !s->match.at; n--) {
        if (n > s->n) continue;
        const struct place p = *table_at(d, s->group, s->ids + s->n - n, n);
        s->run = match_length(d, s, p);
        if (s->run >= n) s->match = p;
    }
}

/* ---- chances */

/* 2, 3, 4 to 7, 8 to 15, 16 and more tokens */
static int run_class(int64_t run)
{
    return run < 4 ? (int)run - 2 : run < 8 ? 2 : run < 16 ? 3 : 4;
}

static double class_chance(const struct source *s, int64_t run)
{
    /* counts before the first prediction */
    static const double right[CLASSES] = {0.5, 1, 1.5, 2.5, 3};
    const double tried = 4;
    const int class = run_class(run);
    return (s->right[class] + right[class]) / (s->tried[class] + tried);
}

static void count_prediction(struct source *s, bool right)
{
    const int class = run_class(s->run);
    s->tried[class]++;
    s->right[class] += right;
    if (s->tried[class] < TRIES) return;
    s->tried[class] /= 2;
    s->right[class] /= 2;
}

static void append_one(struct drafts *d, struct source *s, int32_t id)
{
    const struct source *from = &d->sources[s->match.source];
    /* the source may have been replaced, or may have no token yet after what it gave */
    const bool predicted = s->match.at && from->group == s->group && s->match.at < from->n;
    const bool right = predicted && from->ids[s->match.at] == id;
    if (predicted) count_prediction(s, right);
    s->ids[s->n++] = id;
    index_suffixes(d, s);
    if (right && s->match.at + 1 < from->n) {
        s->match.at++;
        s->run++;
    } else
        find_match(d, s);
}

tare_status drafts_append(struct drafts *d, int64_t handle, const int32_t *ids, int64_t n, struct err *e)
{
    struct source *s = &d->sources[handle % DRAFT_SOURCES];
    if (s->n + n > s->capacity) TRY(mem_grow((void **)&s->ids, &s->capacity, s->n + n, (int64_t)sizeof *s->ids, e));
    for (int64_t i = 0; i < n; i++) append_one(d, s, ids[i]);
    return TARE_OK;
}

int64_t drafts_propose(const struct drafts *d, int64_t handle, int64_t most, int32_t *ids, double *chance)
{
    const struct source *s = &d->sources[handle % DRAFT_SOURCES], *from = &d->sources[s->match.source];
    double all = 1;
    int64_t n = 0;
    if (!match_length(d, s, s->match)) return 0;
    for (; n < most; n++) {
        const int64_t at = s->match.at + n;
        if (at >= from->n && from != s) break;
        /* a sequence that repeats itself: the repetition continues with the drafts */
        ids[n] = at < from->n ? from->ids[at] : ids[at - from->n];
        chance[n] = all *= class_chance(s, s->run + n);
    }
    return n;
}
