/* Collectives built on the communicator's own: sizes, agreement on an error, facts that must be
 * equal on all ranks. */
#include "base/arena.h"
#include "base/str.h"
#include "dist/comm.h"

#include <stdio.h>
#include <string.h>

enum {
    MOST_CODE = 1000,    /* every status is smaller */
    MOST_FACTS = 1 << 24 /* bytes of a rank's facts */
};
static const int64_t MOST_BYTES = (int64_t)1 << 44;

/* Gathers equally sized host memory from all ranks; all_gather works on the backend's memory, which
 * may be elsewhere. */
static tare_status gather_equal(struct comm *c, const void *in, int64_t bytes, void *out, struct err *e)
{
    OWNED(mem_free_at) int64_t *each = NULL;
    TRY(mem_new(c->size * (int64_t)sizeof *each, (void **)&each, e));
    for (int r = 0; r < c->size; r++) each[r] = bytes;
    return c->gather(c, in, bytes, out, each, e);
}

tare_status comm_gather_numbers(struct comm *c, int64_t n, int64_t *all, struct err *e)
{
    return gather_equal(c, &n, sizeof n, all, e);
}

/* Checks sizes before they are used: a negative size, or a total beyond all memory, means that the
 * message was changed in transit. */
tare_status comm_gather_sizes(struct comm *c, int64_t n, int64_t *sizes, struct err *e)
{
    TRY(comm_gather_numbers(c, n, sizes, e));
    for (int r = 0; r < c->size; r++)
        if (sizes[r] < 0 || sizes[r] > MOST_BYTES)
            FAIL(e, TARE_E_COMM, "rank %d announces an invalid size of %lld bytes: its message was changed in transit", r,
                 (long long)sizes[r]);
    return TARE_OK;
}

/* Returns the rank whose error is reported: the lowest that failed, but a cancellation only if
 * nothing else failed. */
static int first_failed(const int64_t *codes, int size)
{
    int cancelled = -1;
    for (int r = 0; r < size; r++) {
        if (codes[r] && codes[r] != TARE_E_CANCELLED) return r;
        if (codes[r] && cancelled < 0) cancelled = r;
    }
    return cancelled;
}

tare_status comm_agree(struct comm *c, tare_status status, struct err *e)
{
    int64_t *codes = NULL;
    struct err mine = {0};
    if (c->size == 1) return status;
    if (status && e) mine = *e;
    TRY(mem_new(c->size * (int64_t)sizeof *codes, (void **)&codes, e));
    tare_status got = comm_gather_numbers(c, status, codes, e);
    const int failed = got ? -1 : first_failed(codes, c->size);
    if (failed >= 0) {
        got = c->broadcast(c, &mine, sizeof mine, failed, e);
        if (!got) {
            mine.message[sizeof mine.message - 1] = mine.frames[sizeof mine.frames - 1] = 0;
            if (!*mine.message) snprintf(mine.message, sizeof mine.message, "failed without a message");
            if (e) *e = mine;
            got = codes[failed] > 0 && codes[failed] < MOST_CODE ? (tare_status)codes[failed] : TARE_E_GENERIC;
            if (e) e->code = got;
            int equal = 0; /* an error that all ranks share is not attributed to one rank */
            for (int r = 0; r < c->size; r++) equal += codes[r] == codes[failed];
            if (equal < c->size && got != TARE_E_CANCELLED) err_prefix(e, "rank %d", failed);
        }
    }
    mem_free(codes);
    return got;
}

/* ---- facts. A rank's text: "name\nvalue\n" ... */

struct facts {
    char *text;
    int64_t size;
};

static const char *line_of(const struct facts *f, int64_t *at, int64_t *n)
{
    if (*at >= f->size) return NULL;
    const char *line = f->text + *at, *end = memchr(line, '\n', (size_t)(f->size - *at));
    *n = end ? end - line : f->size - *at;
    *at += *n + 1;
    return line;
}

static const char *find_fact(const struct facts *f, tare_text name, int64_t *n)
{
    int64_t at = 0, size;
    for (const char *line; (line = line_of(f, &at, &size));) {
        const char *value = line_of(f, &at, n);
        if (value && size == name.size && !memcmp(line, name.data, (size_t)size)) return value;
    }
    return NULL;
}

/* Lists the ranks whose fact differs from that of rank 0 in text, as "1, 3". */
static int list_others(const struct facts *all, int size, tare_text name, char *text, int64_t capacity)
{
    int64_t n = 0, m = 0, at = 0;
    int count = 0;
    const char *value = find_fact(&all[0], name, &n);
    text[0] = 0;
    for (int r = 0; r < size; r++) {
        const char *other = find_fact(&all[r], name, &m);
        if (!value == !other && (!value || (n == m && !memcmp(value, other, (size_t)n)))) continue;
        if (at + 16 < capacity) at += snprintf(text + at, (size_t)(capacity - at), "%s%d", count ? ", " : "", r);
        count++;
    }
    return count;
}

static tare_status refuse_difference(const struct facts *all, int size, const char *what, tare_text name, int rank, struct err *e)
{
    int64_t n[2] = {0};
    char ranks[300];
    const char *mine = find_fact(&all[0], name, &n[0]), *other = find_fact(&all[rank], name, &n[1]);
    const int count = list_others(all, size, name, ranks, sizeof ranks);
    FAIL(e, TARE_E_CONFIG,
         "%s differs between ranks: %.*s is %s%.*s%s on rank 0 and %s%.*s%s on rank%s %s; start all ranks with the same settings",
         what, (int)name.size, name.data, mine ? "'" : "", mine ? (int)n[0] : 7, mine ? mine : "missing", mine ? "'" : "",
         other ? "'" : "", other ? (int)n[1] : 7, other ? other : "missing", other ? "'" : "", count > 1 ? "s" : "", ranks);
}

static tare_status compare_facts(const struct facts *all, int size, const char *what, struct err *e)
{
    for (int r = 1; r < size; r++) {
        if (all[r].size == all[0].size && !memcmp(all[r].text, all[0].text, (size_t)all[0].size)) continue;
        /* Names of rank 0, then names that it lacks. */
        for (int side = 0; side < 2; side++) {
            const struct facts *from = &all[side ? r : 0], *in = &all[side ? 0 : r];
            int64_t at = 0, n, m, k;
            for (const char *name; (name = line_of(from, &at, &n));) {
                const char *value = line_of(from, &at, &m), *other = find_fact(in, (tare_text){name, n}, &k);
                if (!value || !other || m != k || memcmp(value, other, (size_t)m))
                    return refuse_difference(all, size, what, (tare_text){name, n}, r, e);
            }
        }
    }
    return TARE_OK;
}

static tare_status gather_facts(struct comm *c, const char *what, const struct str *mine, struct err *e)
{
    OWNED(mem_free_at) int64_t *sizes = NULL;
    int64_t total = 0;
    OWNED(mem_free_at) struct facts *all = NULL;
    OWNED(mem_free_at) char *texts = NULL;
    TRY(mem_new(c->size * (int64_t)sizeof *sizes, (void **)&sizes, e));
    TRY(mem_new(c->size * (int64_t)sizeof *all, (void **)&all, e));
    TRY(comm_gather_sizes(c, mine->size, sizes, e));
    for (int r = 0; r < c->size; r++) {
        if (sizes[r] > MOST_FACTS)
            FAIL(e, TARE_E_COMM, "%s: rank %d announces an invalid size of %lld bytes: its message was changed in transit", what, r,
                 (long long)sizes[r]);
        total += sizes[r];
    }
    TRY(mem_new(total + 1, (void **)&texts, e));
    TRY(c->gather(c, mine->data, mine->size, texts, sizes, e));
    total = 0;
    for (int r = 0; r < c->size; total += sizes[r++]) all[r] = (struct facts){texts + total, sizes[r]};
    return compare_facts(all, c->size, what, e);
}

tare_status comm_same(struct comm *c, const char *what, const struct comm_fact *facts, int64_t n, struct err *e)
{
    OWNED(str_free) struct str mine = {0};
    tare_status status = TARE_OK;
    if (c->size == 1) return TARE_OK;
    for (int64_t i = 0; i < n && !status; i++) status = str_addf(&mine, e, "%s\n%s\n", facts[i].name, facts[i].value);
    status = comm_agree(c, status, e);
    if (!status) status = gather_facts(c, what, &mine, e);
    return status;
}
