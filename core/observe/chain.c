#include "observe/chain.h"

#include "base/json.h"
#include "observe/sinks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct chain {
    char dir[FS_PATH], path[FS_PATH], last[CHAIN_SUM];
    int fd;           /* -1 before chain_settle */
    json_t *covered;  /* name -> checksum */
    struct str whole; /* the chain as chain_settle writes it; empty: the file on disk is final */
};

const char CHAIN_PROCESS[] = "process", CHAIN_FORK[] = "fork", CHAIN_BACK[] = "back";
static const char FILE_NAME[] = "chain.jsonl", END[] = ",\"chain\":\"";
enum { TAIL = sizeof END - 1 + CHAIN_SUM - 1 + 2 }; /* ,"chain":"SUM"} */

void chain_sum(const void *data, int64_t n, char out[CHAIN_SUM])
{
    uint64_t half[2];
    fs_hash128(data, n, half);
    snprintf(out, CHAIN_SUM, "%016llx%016llx", (unsigned long long)half[0], (unsigned long long)half[1]);
}

/* Computes the checksum of the previous line's checksum followed by this line up to its own. */
static tare_status link_checksum(const char *before, const char *line, int64_t n, char out[CHAIN_SUM], struct err *e)
{
    OWNED(str_free) struct str text = {0};
    TRY(str_add(&text, before, -1, e));
    TRY(str_add(&text, line, n, e));
    chain_sum(text.data, text.size, out);
    return TARE_OK;
}

/* ---------------------------------------------------------------- reading */

struct walk {
    chain_visit visit;
    void *ctx;
    const char *path;
    char before[CHAIN_SUM]; /* checksum of the previous line */
};

/* Parses a line into l, whose members are valid as long as root. */
static tare_status parse_link(struct walk *w, const char *line, int64_t n, struct chain_link *l, json_t **root, struct err *e)
{
    char sum[CHAIN_SUM], where[FS_PATH + 32];
    snprintf(where, sizeof where, "%s:%lld", w->path, (long long)l->line);
    if (json_parse(line, n, where, root, e)) {
        if (e) e->code = TARE_E_CORRUPT;
        return TARE_E_CORRUPT;
    }
    l->kind = json_text_or(*root, "link", "");
    l->chain = json_text_or(*root, "chain", "");
    l->step = json_int_or(*root, "step", -1);
    l->files = json_object_get(*root, "files");
    if (l->step < 0 || strlen(l->chain) != CHAIN_SUM - 1 || n <= TAIL || memcmp(line + n - TAIL, END, sizeof END - 1))
        FAIL(e, TARE_E_CORRUPT, "%s: is not a link of the chain", where);
    TRY(link_checksum(w->before, line, n - TAIL, sum, e));
    l->follows = !strcmp(sum, l->chain);
    memcpy(w->before, l->chain, CHAIN_SUM);
    return TARE_OK;
}

/* Visits the lines in order. *end: bytes of complete lines. */
static tare_status walk_lines(struct walk *w, const struct str *text, int64_t *end, struct err *e)
{
    struct chain_link l = {.line = 1};
    for (*end = 0; *end < text->size; l.line++) {
        const char *at = text->data + *end, *newline = memchr(at, '\n', (size_t)(text->size - *end));
        json_t *root = NULL;
        if (!newline) break;
        tare_status status = parse_link(w, at, newline - at, &l, &root, e);
        if (!status) status = w->visit(w->ctx, &l, e);
        json_decref(root);
        TRY(status);
        *end = newline + 1 - text->data;
    }
    return TARE_OK;
}

/* Checks the text after the last complete line. An interrupted write leaves the start of a line; a
 * complete link with more text is one whose end was changed. */
static tare_status check_rest(const char *path, const char *rest, int64_t n, struct err *e)
{
    const char *sum = n ? strstr(rest, END) : NULL;
    if (sum && n - (sum - rest) > TAIL) FAIL(e, TARE_E_CORRUPT, "%s: its last line has no end", path);
    return TARE_OK;
}

tare_status chain_each(const char *run_dir, chain_visit visit, void *ctx, int64_t *half, struct err *e)
{
    char path[FS_PATH];
    OWNED(str_free) struct str text = {0};
    int64_t end = 0;
    TRY(fs_join(path, run_dir, FILE_NAME, e));
    TRY(fs_read_all(path, &text, e));
    TRY(walk_lines(&(struct walk){.visit = visit, .ctx = ctx, .path = path}, &text, &end, e));
    *half = text.size - end;
    return check_rest(path, text.data + end, *half, e);
}

/* ---------------------------------------------------------------- writing */

static tare_status cover_checksum(struct chain *c, const char *name, const char *sum, struct err *e)
{
    json_t *s = json_string(sum);
    if (!s || json_object_set_new(c->covered, name, s))
        FAIL(e, TARE_E_NOMEM, "%s: out of memory for the checksum of %s", c->path, name);
    return TARE_OK;
}

tare_status chain_cover(struct chain *c, const char *name, const void *data, int64_t n, struct err *e)
{
    char sum[CHAIN_SUM];
    chain_sum(data, n, sum);
    return cover_checksum(c, name, sum, e);
}

static tare_status cover_file(struct chain *c, const char *name, struct err *e)
{
    char path[FS_PATH];
    OWNED(fs_unmap) struct fs_map m = {0};
    TRY(fs_join(path, c->dir, name, e));
    TRY(fs_map(path, &m, e));
    return chain_cover(c, name, m.data, m.size, e);
}

static tare_status print_link(struct chain *c, int64_t step, const char *kind, struct str *line, struct err *e)
{
    char sum[CHAIN_SUM];
    TRY(str_addf(line, e, "{\"step\":%lld,\"link\":\"%s\",\"files\":", (long long)step, kind));
    TRY(json_print(c->covered, line, e));
    TRY(link_checksum(c->last, line->data, line->size, sum, e));
    TRY(str_addf(line, e, "%s%s\"}\n", END, sum));
    memcpy(c->last, sum, CHAIN_SUM);
    return TARE_OK;
}

static tare_status add_link(struct chain *c, int64_t step, const char *kind, struct err *e)
{
    OWNED(str_free) struct str line = {0};
    tare_status status = print_link(c, step, kind, &line, e);
    if (!status) status = fs_check_open(c->fd, c->path, e);
    if (!status) status = events_append_all(c->fd, c->path, line.data, line.size, e);
    json_object_clear(c->covered);
    return status;
}

tare_status chain_step(struct chain *c, int64_t step, struct err *e)
{
    return add_link(c, step, "step", e);
}

static void name_checkpoint(int64_t step, char name[100])
{
    snprintf(name, 100, "checkpoints/step-%06lld/complete.json", (long long)step);
}

tare_status chain_checkpoint(struct chain *c, int64_t step, struct err *e)
{
    char name[100];
    name_checkpoint(step, name);
    TRY(cover_file(c, name, e));
    return add_link(c, step, "checkpoint", e);
}

tare_status chain_rollback(struct chain *c, int64_t step, const char *manifest, int64_t n, struct err *e)
{
    TRY(chain_cover(c, "manifest.json", manifest, n, e));
    TRY(add_link(c, step, CHAIN_BACK, e));
    return chain_sync(c, e);
}

tare_status chain_end(struct chain *c, int64_t step, struct err *e)
{
    return add_link(c, step, "end", e);
}

tare_status chain_sync(struct chain *c, struct err *e)
{
    if (fsync(c->fd)) FAIL(e, TARE_E_IO, "%s: cannot be synced: %s", c->path, strerror(errno));
    return TARE_OK;
}

void chain_close(struct chain *c)
{
    if (!c) return;
    if (c->fd >= 0) close(c->fd);
    json_decref(c->covered);
    str_free(&c->whole);
    free(c);
}

/* ---------------------------------------------------------------- resuming */

struct cut {
    struct chain *c;
    int64_t step, lines;
};

/* Keeps links up to the step. Links of processes that started or ended at that step are history and
 * also stay. */
static tare_status keep_link(void *ctx, const struct chain_link *l, struct err *e)
{
    struct cut *k = ctx;
    char word[STR_SHELL];
    if (l->step > k->step) return TARE_E_CANCELLED; /* the remaining links are removed */
    if (!l->follows)
        FAIL(
            e, TARE_E_CORRUPT,
            "%s:%lld: does not follow from the line before it, so files of this run were changed; inspect them with tare reproduce %s, or remove the file to start a new chain",
            k->c->path, (long long)l->line, str_shell(word, k->c->dir));
    memcpy(k->c->last, l->chain, CHAIN_SUM);
    return TARE_OK;
}

tare_status chain_check(const char *run_dir, int64_t step, struct err *e)
{
    struct chain c = {.fd = -1};
    int64_t half;
    TRY(fs_join(c.dir, "", run_dir, e));
    TRY(fs_join(c.path, run_dir, FILE_NAME, e));
    if (!fs_exists(c.path)) return TARE_OK;
    const tare_status status = chain_each(run_dir, keep_link, &(struct cut){.c = &c, .step = step}, &half, e);
    return status == TARE_E_CANCELLED ? TARE_OK : status;
}

/* Computes the size in bytes of the links up to the step, and stores the last checksum in
 * c->last. */
static tare_status kept_bytes(struct chain *c, const struct str *text, int64_t step, int64_t *end, struct err *e)
{
    struct cut k = {.c = c, .step = step};
    *end = 0;
    if (step < 0) return TARE_OK;
    const tare_status status = walk_lines(&(struct walk){.visit = keep_link, .ctx = &k, .path = c->path}, text, end, e);
    return status == TARE_E_CANCELLED ? TARE_OK : status;
}

/* Stores the checksum of the last line in `last`, and the former value of `last` in `was`. Returns
 * false if that line is not a link. */
static bool last_checksum(const struct str *text, char last[CHAIN_SUM], char was[CHAIN_SUM])
{
    const char *end = text->data + text->size - 1; /* the newline */
    if (text->size <= TAIL || memcmp(end - TAIL, END, sizeof END - 1)) return false;
    memcpy(was, last, CHAIN_SUM);
    memcpy(last, end - 2 - (CHAIN_SUM - 1), CHAIN_SUM - 1);
    return true;
}

/* Appends a link to the text. */
static tare_status append_link(struct chain *c, int64_t step, const char *kind, struct str *text, struct err *e)
{
    OWNED(str_free) struct str line = {0};
    TRY(print_link(c, step, kind, &line, e));
    return str_add(text, line.data, line.size, e);
}

/* Links of later steps stay until their files are removed. Until then this link follows them
 * too. */
static tare_status announce_link(struct chain *c, struct str *old, int64_t step, const char *kind, struct err *e)
{
    char settled[CHAIN_SUM];
    if (!last_checksum(old, c->last, settled)) return TARE_OK;
    TRY(append_link(c, step, kind, old, e));
    memcpy(c->last, settled, CHAIN_SUM);
    return fs_write_atomic(c->path, old->data, old->size, e);
}

static tare_status begin_link(struct chain *c, int64_t step, const char *kind, struct err *e)
{
    const int64_t at = step > 0 ? step : 0;
    OWNED(str_free) struct str old = {0};
    int64_t kept = 0;
    tare_status status = fs_exists(c->path) ? fs_read_all(c->path, &old, e) : TARE_OK;
    if (!status) status = kept_bytes(c, &old, step, &kept, e);
    /* drops a partial line left by an interrupted write */
    while (old.size && old.data[old.size - 1] != '\n') old.size--;
    const bool goes_back = kept < old.size;
    if (!status) status = str_add(&c->whole, old.data, kept, e);
    if (!status && goes_back) status = announce_link(c, &old, at, kind, e);
    if (!status) status = append_link(c, at, kind, &c->whole, e);
    if (!status && !goes_back) {
        status = fs_write_atomic(c->path, c->whole.data, c->whole.size, e);
        str_free(&c->whole);
    }
    json_object_clear(c->covered);
    return status;
}

static tare_status cover_if_there(struct chain *c, const char *name, struct err *e)
{
    char path[FS_PATH];
    TRY(fs_join(path, c->dir, name, e));
    return fs_exists(path) ? cover_file(c, name, e) : TARE_OK;
}

static tare_status open_at(struct chain *c, const struct chain_start *s, struct err *e)
{
    char checkpoint[100];
    name_checkpoint(s->step, checkpoint);
    for (int i = 0; i < s->n; i++) {
        const struct chain_text *t = &s->texts[i];
        TRY(t->text ? chain_cover(c, t->name, t->text->data, t->text->size, e) : cover_if_there(c, t->name, e));
    }
    TRY(cover_if_there(c, checkpoint, e));
    return begin_link(c, s->step, s->kind, e);
}

tare_status chain_settle(struct chain *c, struct err *e)
{
    if (c->whole.size) TRY(fs_write_atomic(c->path, c->whole.data, c->whole.size, e));
    c->fd = open(c->path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (c->fd < 0) FAIL(e, TARE_E_IO, "%s: %s", c->path, strerror(errno));
    str_free(&c->whole);
    return TARE_OK;
}

tare_status chain_open(const char *run_dir, const struct chain_start *start, struct chain **out, struct err *e)
{
    *out = NULL;
    struct chain *c = calloc(1, sizeof *c);
    if (!c) FAIL(e, TARE_E_NOMEM, "%s: out of memory for its chain", run_dir);
    c->fd = -1;
    c->covered = json_object();
    tare_status status =
        c->covered ? fs_join(c->dir, "", run_dir, e) : err_set(e, TARE_E_NOMEM, __FILE__, __LINE__, "out of memory");
    if (!status) status = fs_join(c->path, run_dir, FILE_NAME, e);
    if (!status) status = open_at(c, start, e);
    if (status)
        chain_close(c);
    else
        *out = c;
    return status;
}
