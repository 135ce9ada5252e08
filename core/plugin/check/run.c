/* Runs the tests in child processes and reports their outcomes. */
#include "plugin/check/internal.h"

#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

const tare_loss CHECK_LOSS = {.struct_size = sizeof CHECK_LOSS,
                              .clip = 0.2,
                              .clip_high = 0.28,
                              .dual_clip = 3,
                              .kl_coef = 0.01,
                              .entropy_coef = 0.01,
                              .shaping = 0.1};

uint64_t check_below(struct check *c, uint64_t n)
{
    return rng_below(c->key, c->drawn++, n);
}

double check_uniform(struct check *c)
{
    return rng_uniform(c->key, c->drawn++, 1);
}

double check_field(const char *name, uint64_t uid)
{
    uint64_t x = uid;
    for (; *name; name++) x = (x ^ (uint64_t)(unsigned char)*name) * 0x100000001b3u;
    x ^= x >> 29;
    return x % 4 ? (double)(x % 1000) / 8 - 10 : (double)NAN;
}

/* "tare.embed/1" of a policy whose hidden states are a function of the text's bytes. */
enum { EMBED_DIM = 8 };

static int64_t embed_dim(void *ctx)
{
    (void)ctx;
    return EMBED_DIM;
}

static tare_status embed_identity(void *ctx, const tare_stream *out, tare_error *error)
{
    static const char NAME[] = "the policy of tare plugin check";
    (void)ctx, (void)error;
    return out->write(out->ctx, NAME, sizeof NAME - 1);
}

static tare_status embed_texts(void *ctx, const tare_text *texts, int64_t n, float *out, tare_error *error)
{
    (void)ctx, (void)error;
    for (int64_t i = 0; i < n; i++) {
        memset(out + i * EMBED_DIM, 0, EMBED_DIM * sizeof *out);
        for (int64_t k = 0; k < texts[i].size; k++) out[i * EMBED_DIM + k % EMBED_DIM] += (float)(unsigned char)texts[i].data[k];
    }
    return TARE_OK;
}

static const void *find_extension(void *ctx, const char *id)
{
    static const tare_embed_v1 POLICY = {
        .struct_size = sizeof POLICY, .dim = embed_dim, .identity = embed_identity, .embed = embed_texts};
    (void)ctx;
    return strcmp(id, "tare.embed/1") ? NULL : &POLICY;
}

tare_status check_dataset(struct check *c, const tare_dataset *rows, const tare_dataset **out, struct err *e)
{
    const struct plugin *p = c->plugin;
    tare_dataset *copy;
    tare_column *column;
    TRY(arena_new(&c->arena, &copy, 1, e));
    TRY(arena_new(&c->arena, &column, p->desc.n_wants + 1, e));
    *copy = *rows;
    copy->column = column;
    for (uint32_t k = 0; k < p->desc.n_wants; k++) {
        double *field;
        if (p->wants[k].axis != TARE_AXIS_ROW || p->column[k] == COLUMN_ABSENT) continue;
        TRY(arena_new(&c->arena, &field, rows->n_rows + 1, e));
        for (int64_t r = 0; r < rows->n_rows; r++) field[r] = check_field(p->wants[k].name, rows->prompt_uid[r]);
        column[k] = (tare_column){field, rows->n_rows, 1};
    }
    *out = copy;
    return TARE_OK;
}

tare_status check_env(struct check *c, struct plugin_env *out, struct err *e)
{
    *out = (struct plugin_env){.seed = c->options->seed, .ctx = c, .extension = find_extension, .loss = &CHECK_LOSS};
    return c->plugin->desc.kind == TARE_KIND_CURRICULUM ? check_dataset(c, &CHECK_DATASET, &out->dataset, e) : TARE_OK;
}

tare_status check_instance(struct check *c, struct plugin_instance **out, struct err *e)
{
    struct plugin_env env;
    *out = NULL;
    TRY(check_env(c, &env, e));
    return plugin_create(c->plugin, c->values, c->plugin->desc.kind == TARE_KIND_ESTIMATOR ? CHECK_CLUSTERS : 0, &env, out, e);
}

tare_status check_cut(const struct plugin_instance *x, const struct str *cut, int64_t whole, struct err *e)
{
    OWNED(str_free) struct str again = {0};
    TRY(plugin_save_raw(x, &again, e));
    if (again.size == cut->size && !memcmp(again.data ? again.data : "", cut->data ? cut->data : "", (size_t)cut->size))
        return TARE_OK;
    FAIL(e, TARE_E_PLUGIN, "load accepts a state that is cut short: %lld of %lld bytes, and saves another one",
         (long long)cut->size, (long long)whole);
}

tare_status check_ignored(const struct err *why, struct err *e)
{
    if (why->code && strstr(why->message, "load goes on after")) FAIL(e, TARE_E_PLUGIN, "load ignores that a state is cut short");
    return TARE_OK;
}

/* After a refused load, the instance must still work. */
tare_status check_damaged(struct check *c, const struct str *raw, int round, struct err *e)
{
    OWNED(plugin_destroy_at) struct plugin_instance *x = NULL;
    struct err why = {0};
    OWNED(str_free) struct str bytes = {0};
    /* with these parameters the state is empty, so it cannot be cut short */
    if (!raw->size && round % 2 == 0) return TARE_OK;
    TRY(check_instance(c, &x, e));
    const int64_t n = (int64_t)check_below(c, (uint64_t)(raw->size + round % 2));
    TRY(str_add(&bytes, raw->data, n, e));
    if (round % 2)
        for (int64_t k = 0; k < n; k++)
            if (!check_below(c, 4)) bytes.data[k] = (char)check_below(c, 256);
    const tare_status got = plugin_load_raw(x, bytes.data, n, "damaged state", &why);
    TRY(check_ignored(&why, e));
    return round % 2 == 0 && !got ? check_cut(x, &bytes, raw->size, e) : TARE_OK;
}

tare_status check_state(struct check *c, check_instance_function used, check_pair_function go_on, struct err *e)
{
    OWNED(plugin_destroy_at) struct plugin_instance *a = NULL, *b = NULL;
    OWNED(str_free) struct str saved = {0}, one = {0}, two = {0}, raw = {0};
    TRY(used(c, &a, e));
    TRY(check_instance(c, &b, e));
    TRY(plugin_save(a, &saved, e));
    TRY(plugin_load(b, saved.data, saved.size, NULL, "saved state", e));
    TRY(go_on(c, a, b, e));
    TRY(plugin_save(a, &one, e));
    TRY(plugin_save(b, &two, e));
    if (one.size != two.size || memcmp(one.data, two.data, (size_t)one.size))
        FAIL(e, TARE_E_PLUGIN, "save and load changed the state");
    TRY(plugin_save_raw(a, &raw, e));
    for (int round = 0; round < 200; round++) TRY(check_damaged(c, &raw, round, e));
    return TARE_OK;
}

int64_t check_rounds(const struct check *c, int64_t n)
{
    const int64_t fewer = c->options->fewer > 1 ? c->options->fewer : 1;
    return n > fewer ? n / fewer : 1;
}

tare_status check_skip(struct check *c, struct err *e, const char *why)
{
    c->skipped = true;
    FAIL(e, TARE_E_UNSUPPORTED, "%s", why);
}

/* Result that a child process sends to its parent. */
struct report {
    int32_t outcome;
    int32_t last; /* 1: no test of the plugin can run, so the other tests would report the same */
    char message[1000];
};

/* Refuses an assignment that no plugin of the file has a parameter for. */
static tare_status check_words(const struct plugin_file *f, const struct check_options *o, struct err *e)
{
    for (int64_t i = 0; i < o->n_assignments; i++) {
        char key[128];
        bool known = false;
        snprintf(key, sizeof key, "%.*s", (int)strcspn(o->assignments[i], "="), o->assignments[i]);
        for (uint32_t j = 0; j < f->n; j++) known = known || plugin_find_param(&f->plugins[j], key) >= 0;
        if (!known) FAIL(e, TARE_E_CONFIG, "no plugin in the file has a parameter %s (`tare plugin info` lists them)", key);
    }
    return TARE_OK;
}

static tare_status values_of(struct check *c, struct err *e)
{
    const struct plugin *p = c->plugin;
    const struct config_param *settings = NULL;
    for (int64_t i = 0; i < c->options->n_assignments; i++) {
        const char *a = c->options->assignments[i];
        char key[128];
        snprintf(key, sizeof key, "%.*s", (int)strcspn(a, "="), a);
        if (plugin_find_param(p, key) >= 0)
            TRY(plugin_settings(p, (struct plugin_words){&a, 1}, settings, &c->arena, &settings, e));
    }
    return plugin_params(p, settings, &c->arena, &c->values, e);
}

/* Runs a test between two observations of the process. A change made by a call is reported instead
 * of its consequence. */
static tare_status run_watched(const struct check_test *t, struct check *c, struct err *e)
{
    const struct surroundings before = surroundings_now();
    check_watch(c, true);
    const tare_status status = t->run(c, e);
    check_watch(c, false);
    if (c->violation.code && (!status || c->skipped)) {
        c->skipped = false;
        *e = c->violation;
        return TARE_E_PLUGIN;
    }
    if (status) return status;
    const struct surroundings after = surroundings_now();
    return surroundings_same(&before, &after, "it", e);
}

/* Runs a test on every plugin of its kind in the file. */
static tare_status run_on_each(const struct check_test *t, struct check *c, int64_t *tried, struct err *e)
{
    const struct plugin_file *f;
    TRY(plugin_file_open(c->options->path, &f, e));
    if (check_words(f, c->options, e)) {
        ++*tried;
        c->untested = true;
        return err_prefix(e, "nothing was tested");
    }
    for (uint32_t i = 0; i < f->n; i++) {
        c->plugin = &f->plugins[i];
        const int32_t kind = c->plugin->desc.kind;
        if (t->kind > 0 && t->kind != kind) continue;
        ++*tried;
        tare_status status = values_of(c, e);
        if (status == TARE_E_CONFIG) { /* a required parameter is missing */
            c->untested = true;
            return err_prefix(e, "nothing was tested; add KEY=VALUE after the plugin's name");
        }
        if (!status) status = run_watched(t, c, e);
        if (status && c->skipped && i + 1 < f->n) { /* the file's other plugins may have it */
            c->skipped = false;
            continue;
        }
        if (status) return f->n > 1 ? err_prefix(e, "%s %s", plugin_kind_name(kind), c->plugin->desc.name) : status;
    }
    return TARE_OK;
}

static void run_here(const struct check_test *t, const struct check_options *o, struct report *r)
{
    struct check c = {.options = o, .key = rng_key(o->seed, RNG_PLUGIN)};
    struct err e = {0};
    int64_t tried = t->kind == 0;
    arena_init(&c.arena, "check");
    check_verifier_rows(o->rows, o->n_rows);
    for (const char *p = t->name; *p; p++) c.key = rng_derive(c.key, (uint64_t)*p);
    const tare_status status = t->kind == 0 ? t->run(&c, &e) : run_on_each(t, &c, &tried, &e);
    r->outcome = c.skipped || !tried ? CHECK_SKIP : status ? CHECK_FAIL : CHECK_PASS;
    r->last = c.untested;
    snprintf(r->message, sizeof r->message, "%.990s",
             !tried        ? "no plugin of that kind"
             : status      ? e.message
             : c.note.size ? c.note.data
                           : "");
    arena_free(&c.arena);
    str_free(&c.note);
}

/* Waits at most limit seconds for the child. */
static void collect_report(pid_t child, int pipe_end, double limit, struct report *r)
{
    const double start = clock_seconds();
    int state = 0;
    bool late = false;
    for (;;) {
        const pid_t got = waitpid(child, &state, WNOHANG);
        if (got == child) break;
        if (got < 0 && errno != EINTR) break;
        if (clock_seconds() - start > limit && !late) {
            late = true;
            kill(child, SIGKILL);
        }
        const struct timespec pause = {0, 2000000};
        nanosleep(&pause, NULL);
    }
    struct report received;
    const bool complete = read(pipe_end, &received, sizeof received) == (ssize_t)sizeof received;
    if (complete && WIFEXITED(state) && !WEXITSTATUS(state)) {
        *r = received;
        return;
    }
    r->outcome = CHECK_FAIL;
    if (late)
        snprintf(r->message, sizeof r->message, "still running after %g s; killed", limit);
    else if (WIFSIGNALED(state))
        snprintf(r->message, sizeof r->message, "killed by signal %d (%s)", WTERMSIG(state), strsignal(WTERMSIG(state)));
    else
        snprintf(r->message, sizeof r->message, "the plugin ended the process with exit status %d; a plugin may not call exit",
                 WEXITSTATUS(state));
}

static tare_status run_in_child(const struct check_test *t, const struct check_options *o, struct report *r, struct err *e)
{
    int ends[2];
    if (pipe(ends)) FAIL(e, TARE_E_IO, "no pipe: %s", strerror(errno));
    fflush(NULL);
    const pid_t child = fork();
    if (child < 0) {
        close(ends[0]);
        close(ends[1]);
        FAIL(e, TARE_E_GENERIC, "cannot start a child process: %s", strerror(errno));
    }
    if (!child) {
        struct report mine = {0};
        static const int DEADLY[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGPIPE};
        for (int i = 0; i < 6; i++) signal(DEADLY[i], SIG_DFL);
        log_set_level(LOG_NONE);
        surroundings_catch_output();
        run_here(t, o, &mine);
        const bool sent = write(ends[1], &mine, sizeof mine) == (ssize_t)sizeof mine;
        _exit(sent ? 0 : 9);
    }
    close(ends[1]);
    collect_report(child, ends[0], o->limit > 0 ? o->limit : 20, r);
    close(ends[0]);
    return TARE_OK;
}

tare_status check_run(const struct check_options *o, void (*each)(void *ctx, const struct check_result *r), void *ctx,
                      int64_t *failed, struct err *e)
{
    static const struct check_test *const LISTS[] = {CHECK_FILE,      CHECK_ANY,       CHECK_ESTIMATOR,  CHECK_VERIFIER,
                                                     CHECK_CLUSTERER, CHECK_OBJECTIVE, CHECK_CURRICULUM, CHECK_ENVIRONMENT};
    bool unusable = false;
    int64_t found = 0;
    *failed = 0;
    for (size_t l = 0; l < sizeof LISTS / sizeof *LISTS; l++) {
        for (const struct check_test *t = LISTS[l]; t->name; t++) {
            if (o->only && strcmp(o->only, t->name)) continue;
            found++;
            struct check_result result = {.name = t->name, .what = t->what};
            struct report r = {.outcome = CHECK_SKIP, .message = "the file cannot be used"};
            const double start = clock_seconds();
            if (!unusable && o->in_process)
                run_here(t, o, &r);
            else if (!unusable)
                TRY(run_in_child(t, o, &r, e));
            result.seconds = clock_seconds() - start;
            result.outcome = (enum check_outcome)r.outcome;
            snprintf(result.message, sizeof result.message, "%s", r.message);
            if (r.last && o->needs_values) FAIL(e, TARE_E_CONFIG, "%.900s", r.message);
            *failed += result.outcome == CHECK_FAIL;
            if (l == 0 && result.outcome == CHECK_FAIL && !strcmp(t->name, "loads")) unusable = true;
            if (result.outcome != CHECK_SKIP || unusable || strcmp(r.message, "no plugin of that kind")) each(ctx, &result);
            if (r.last) return TARE_OK;
        }
    }
    if (!found) FAIL(e, TARE_E_INVALID, "unknown test '%s'", o->only);
    return TARE_OK;
}

tare_status check_certificate(const struct check_options *o, int64_t tests, int64_t failed, struct str *out, struct err *e)
{
    uint64_t hash;
    TRY(fs_hash_file(o->path, &hash, e));
    return str_addf(out, e, "certificate: xxh3 %016llx, ABI %d.%d, %lld tests, %lld failed, seed %llu\n", (unsigned long long)hash,
                    TARE_ABI_MAJOR, TARE_ABI_MINOR, (long long)tests, (long long)failed, (unsigned long long)o->seed);
}
