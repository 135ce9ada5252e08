/* Samples and verifies the questions that the folder of a `tare eval` lacks, chunk by chunk. */
#include "eval/eval.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/signals.h"
#include "collect/collector.h"
#include "engine/engine.h"
#include "engine/same_ranks.h"
#include "model/shards.h"
#include "observe/run_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

struct evaluation_run {
    const struct config *config;
    struct comm *comm;
    make_model make;
    char task[256], out[FS_PATH], record[FS_PATH];
    struct engine engine;
    struct arena arena, chunk_arena; /* memory of the run, and of a chunk of questions */
    struct collector collector;
    uint64_t prompts_hash;
    json_t *identity;
    struct eval_sample *samples; /* [n, k] */
    int64_t done;                /* questions in the record */
    int lock, fd;
};

static int32_t on_cancelled(void *ctx)
{
    (void)ctx;
    return signals_asked();
}

/* ---------------------------------------------------------------- opening */

static tare_status open_folder(struct evaluation_run *r, struct err *e)
{
    const struct config *c = r->config;
    char folder[FS_PATH];
    TRY(eval_task_name(c, r->task, e));
    if (*c->eval.out) return fs_join(r->out, ".", c->eval.out, e);
    TRY(fs_join(folder, c->run.dir, "eval", e));
    return fs_join(r->out, folder, r->task, e);
}

/* ---------------------------------------------------------------- the folder's identity */

static json_t *hex_string(uint64_t x)
{
    char text[17];
    snprintf(text, sizeof text, "%016" PRIx64, x);
    return json_string(text);
}

/* Hashes the verifiers' parameters as given. */
static uint64_t verifier_params(const struct config *c)
{
    uint64_t h = 0;
    for (const struct config_param *p = c->params; p; p = p->next) {
        if (strncmp(p->section, "verifier.", 9)) continue;
        const char *const parts[] = {p->section, p->key, p->value};
        for (int i = 0; i < 3; i++) h = fs_hash(parts[i], (int64_t)strlen(parts[i]) + 1, h);
    }
    return h;
}

static tare_status make_identity(struct evaluation_run *r, struct err *e)
{
    const struct config *c = r->config;
    OWNED(str_free) struct str verifiers = {0};
    TRY(str_add(&verifiers, c->verifier.plugins, -1, e));
    for (int64_t k = 0; k < verify_n_components(r->engine.verify); k++) {
        const struct plugin *p = verify_plugin(r->engine.verify, k);
        if (p) TRY(str_addf(&verifiers, e, " (%s %s)", p->desc.name, p->desc.version));
    }
    uint64_t stop = fs_hash(r->engine.evaluating.stop, r->engine.evaluating.n_stop * (int64_t)sizeof *r->engine.evaluating.stop, 0);
    stop = fs_hash(r->engine.model->eos, r->engine.model->n_eos * (int64_t)sizeof *r->engine.model->eos, stop);
    const struct model *m = r->engine.model;
    uint64_t weights = model_frozen_hash(m);
    if (m->int8) weights = fs_hash("int8", 4, weights);
    TRY(shards_backend_hash(m, m->weights, m->n_params * (int64_t)sizeof(float), &weights, e));
    r->identity = json_pack(
        "{s:s, s:s, s:o, s:s, s:o, s:o, s:I, s:I, s:f, s:f, s:f, s:I, s:I, s:o, s:s, s:o, s:s}", "data.eval", c->data.eval,
        "model.path", c->model.path, "weights", hex_string(weights), "model.dtype", config_chosen(c, "model", "dtype"), "rows",
        hex_string(r->engine.eval.hash), "prompts", hex_string(r->prompts_hash), "run.seed", (json_int_t)c->run.seed,
        "eval.samples", (json_int_t)c->eval.samples, "eval.temperature", c->eval.temperature, "eval.top_p", c->eval.top_p,
        "eval.min_p", c->eval.min_p, "eval.top_k", (json_int_t)c->eval.top_k, "eval.max_new_tokens",
        (json_int_t)r->engine.evaluating.max_new_tokens, "stop_ids", hex_string(stop), "verifier.plugins", verifiers.data,
        "verifier parameters", hex_string(verifier_params(c)), "run.kernels", r->engine.kernels->name);
    if (!r->identity) FAIL(e, TARE_E_INVALID, "the settings cannot be written as JSON; are the paths valid UTF-8?");
    return TARE_OK;
}

/* Paths may change (a moved folder), and so may the kernels: another machine continues with the
 * same questions. */
static bool may_differ(const char *key)
{
    return !strcmp(key, "data.eval") || !strcmp(key, "model.path") || !strcmp(key, "run.kernels");
}

/* Checks that the folder is new or holds samples of the same evaluation. */
static tare_status check_identity(struct evaluation_run *r, struct err *e)
{
    char path[FS_PATH];
    OWNED(str_free) struct str text = {0};
    OWNED(json_decrefp) json_t *before = NULL;
    const char *key;
    json_t *now;
    TRY(fs_join(path, r->out, "eval.json", e));
    if (!fs_exists(path)) {
        if (fs_exists(r->record))
            FAIL(e, TARE_E_STATE, "%s exists without eval.json; remove the folder or choose another eval.out", r->record);
        TRY(json_print(r->identity, &text, e));
        TRY(str_add(&text, "\n", 1, e));
        return fs_write_atomic(path, text.data, text.size, e);
    }
    TRY(json_read_file(path, &before, e));
    json_object_foreach(r->identity, key, now)
    {
        const json_t *was = json_object_get(before, key);
        if (may_differ(key) || (was && json_equal(now, was))) continue;
        OWNED(mem_free_at) char *a = json_dumps(was, JSON_ENCODE_ANY | JSON_REAL_PRECISION(12));
        OWNED(mem_free_at) char *b = json_dumps(now, JSON_ENCODE_ANY | JSON_REAL_PRECISION(12));
        FAIL(e, TARE_E_STATE, "%s holds another evaluation: %s was %s and is now %s; remove the folder or choose another eval.out",
             r->out, key, a ? a : "absent", b ? b : "?");
    }
    return TARE_OK;
}

/* ---------------------------------------------------------------- the record */

/* Reads the record and truncates an incomplete end. */
static tare_status open_record(struct evaluation_run *r, struct err *e)
{
    struct eval_progress there;
    TRY(mem_new(r->engine.eval.n * r->config->eval.samples * (int64_t)sizeof *r->samples, (void **)&r->samples, e));
    TRY(eval_samples_read(r->record, &r->engine.eval, r->config->eval.samples, r->samples, &there, e));
    r->done = there.done;
    r->fd = open(r->record, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (r->fd < 0) FAIL(e, TARE_E_IO, "%s: %s", r->record, strerror(errno));
    if (ftruncate(r->fd, (off_t)there.bytes) || lseek(r->fd, 0, SEEK_END) < 0)
        FAIL(e, TARE_E_IO, "%s: cannot be truncated after its last complete question: %s", r->record, strerror(errno));
    if (r->done) log_info("%s: continuing after %lld of %lld questions", r->out, (long long)r->done, (long long)r->engine.eval.n);
    return TARE_OK;
}

static tare_status append_record(struct evaluation_run *r, const struct str *text, struct err *e)
{
    for (int64_t at = 0; at < text->size;) {
        const ssize_t n = write(r->fd, text->data + at, (size_t)(text->size - at));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) FAIL(e, TARE_E_IO, "%s: cannot be written: %s", r->record, strerror(errno));
        at += n;
    }
    if (fsync(r->fd)) FAIL(e, TARE_E_IO, "%s: cannot be synced: %s", r->record, strerror(errno));
    return TARE_OK;
}

static tare_status write_chunk(struct evaluation_run *r, const struct batch *b, struct err *e)
{
    OWNED(str_free) struct str text = {0};
    if (r->comm->rank) return TARE_OK;
    TRY(eval_samples_print(b, &text, e));
    return append_record(r, &text, e);
}

static tare_status evaluate_chunk(struct evaluation_run *r, int64_t n, int64_t *tokens, struct err *e)
{
    struct batch b = {0};
    int64_t *rows;
    arena_reset(&r->chunk_arena);
    TRY(arena_new(&r->chunk_arena, &rows, n, e));
    for (int64_t i = 0; i < n; i++) rows[i] = r->done + i;
    const struct collect_request request = {.chosen = {.data = &r->engine.eval, .rows = rows, .n = n},
                                            .key = rng_key((uint64_t)r->config->run.seed, RNG_EVAL)};
    TRY(collector_run(&r->collector, &request, &b, e));
    *tokens += b.n_tokens;
    return comm_agree(r->comm, write_chunk(r, &b, e), e);
}

enum { COMPLETIONS_AT_ONCE = 128 };

static tare_status sample_all(struct evaluation_run *r, struct err *e)
{
    const int64_t k = r->config->eval.samples, all = r->engine.eval.n, first = r->done;
    int64_t chunk = r->config->eval.chunk ? r->config->eval.chunk : (COMPLETIONS_AT_ONCE + k - 1) / k, tokens = 0;
    const double began = clock_seconds();
    while (r->done < all) {
        const int64_t n = all - r->done < chunk ? all - r->done : chunk;
        TRY(comm_stage(r->comm, "evaluate", r->done, e));
        tare_status s = comm_agree(r->comm, *signals_flag() ? TARE_E_CANCELLED : TARE_OK, e);
        if (!s) s = evaluate_chunk(r, n, &tokens, e);
        if (s == TARE_E_CANCELLED)
            FAIL(e, s, "interrupted after %lld of %lld questions; the same command continues", (long long)r->done, (long long)all);
        TRY(s);
        r->done += n;
        TRY(fault_point(r->comm->rank, "questions", r->done, e));
        const double took = clock_seconds() - began;
        log_info("%s: %lld/%lld questions, %.0f tokens/s, about %.0f s left", r->task, (long long)r->done, (long long)all,
                 (double)tokens / took, took * (double)(all - r->done) / (double)(r->done - first));
    }
    return TARE_OK;
}

static void open_collector(struct evaluation_run *r)
{
    r->collector = engine_collector(&r->engine, &r->chunk_arena);
    r->collector.config = engine_evaluation_rollout(r->config);
    r->collector.params = &r->engine.evaluating;
    r->collector.cancelled = signals_flag();
}

/* ---------------------------------------------------------------- the table */

static tare_status write_text(const struct evaluation_run *r, const char *name, const struct str *text, struct err *e)
{
    char path[FS_PATH];
    TRY(fs_join(path, r->out, name, e));
    return fs_write_atomic(path, text->data, text->size, e);
}

/* Makes the table from the file, even if this process made every sample: it never depends on
 * interruptions. */
static tare_status write_report(struct evaluation_run *r, struct str *table, struct err *e)
{
    struct eval_grouping groupings[EVAL_GROUPINGS];
    struct eval_report p = {.config = r->config,
                            .task = r->task,
                            .data = &r->engine.eval,
                            .samples = r->samples,
                            .k = r->config->eval.samples,
                            .max_new_tokens = r->engine.evaluating.max_new_tokens,
                            .groupings = groupings,
                            .identity = r->identity};
    OWNED(str_free) struct str text = {0};
    OWNED(json_decrefp) json_t *results = NULL;
    struct eval_progress there;
    TRY(eval_samples_read(r->record, &r->engine.eval, p.k, r->samples, &there, e));
    r->done = there.done;
    if (r->done != r->engine.eval.n) FAIL(e, TARE_E_CORRUPT, "%s: changed while it was written", r->record);
    TRY(eval_groupings(r->config, &r->engine.eval, &r->arena, groupings, &p.n_groupings, e));
    TRY(eval_questions(&p, &text, e));
    TRY(write_text(r, "questions.jsonl", &text, e));
    str_clear(&text);
    TRY(eval_results(&p, &results, e));
    TRY(json_print(results, &text, e));
    TRY(str_add(&text, "\n", 1, e));
    TRY(write_text(r, "results.json", &text, e));
    return eval_markdown(results, table, e);
}

/* On rank 0: locks the folder, checks that it belongs to this evaluation, and continues its
 * record. */
static tare_status take_folder(struct evaluation_run *r, struct err *e)
{
    if (r->comm->rank) return TARE_OK;
    TRY(make_identity(r, e));
    TRY(fs_mkdirs(r->out, e));
    TRY(run_lock_take(r->out, &r->lock, e));
    TRY(fs_join(r->record, r->out, "samples.jsonl", e));
    TRY(check_identity(r, e));
    return open_record(r, e);
}

static tare_status run_evaluation(struct evaluation_run *r, struct str *table, struct err *e)
{
    const struct config *c = r->config;
    struct engine *g = &r->engine;
    struct eval_grouping groupings[EVAL_GROUPINGS];
    int n;
    TRY(same_ranks_program(r->comm, c, e));
    TRY(open_folder(r, e));
    TRY(engine_open(g, ENGINE_EVAL | ENGINE_ANSWERS, e));
    /* a bad rule is reported before hours of sampling */
    TRY(eval_groupings(c, &g->eval, &r->arena, groupings, &n, e));
    TRY(engine_open(g, ENGINE_VERIFIER, e));
    TRY(comm_agree(r->comm, r->make && !r->comm->rank ? r->make(c, e) : TARE_OK, e));
    TRY(engine_open(g, ENGINE_WHOLE | ENGINE_PROMPTS | ENGINE_SAMPLING | ENGINE_SAMPLER, e));
    TRY(err_as_config(engine_check_prompts(g, &g->eval, false, &r->prompts_hash, e), e));
    TRY(same_ranks_parts(g, NULL, 0, -1, e));
    TRY(comm_agree(r->comm, take_folder(r, e), e));
    TRY(r->comm->broadcast(r->comm, &r->done, sizeof r->done, 0, e));
    open_collector(r);
    TRY(sample_all(r, e));
    return comm_agree(r->comm, r->comm->rank ? TARE_OK : write_report(r, table, e), e);
}

tare_status eval_run(const struct config *c, make_model make, struct comm *comm, struct str *table, struct err *e)
{
    struct evaluation_run r = {.config = c, .comm = comm, .make = make, .lock = -1, .fd = -1};
    engine_init(&r.engine, c, comm);
    r.engine.env = (struct plugin_env){.seed = (uint64_t)c->run.seed, .cancelled = on_cancelled};
    arena_init(&r.arena, "evaluation");
    arena_init(&r.chunk_arena, "evaluation chunk");
    signals_catch();
    const tare_status s = run_evaluation(&r, table, e);
    if (r.fd >= 0) close(r.fd);
    run_lock_release(r.lock);
    json_decref(r.identity);
    mem_free(r.samples);
    engine_close(&r.engine);
    collector_free(&r.collector);
    arena_free(&r.arena);
    arena_free(&r.chunk_arena);
    return s;
}
