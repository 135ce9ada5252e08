/* ReLIFT (Ma et al. 2025, "Learning What Reinforcement Learning Can't", arXiv 2506.07527):
 * reinforcement learning interleaved with supervised updates on the questions that it cannot learn
 * from. A question on which all rollouts fail is queued together with its row's demonstration
 * ("completion"). Once relift.rows questions are queued, the policy's update is followed by
 * supervised steps on that many of them, the newest first, with a separate optimizer. At most one
 * such update is made in a step; the other questions stay queued. */
#include "loop/hooks.h"

#include "base/log.h"
#include "loop/row_completion.h"
#include "loop/run.h"
#include "rollout/prompts.h"
#include "update/supervised.h"

#include <string.h>
#include <tare/verifier.h>

/* Rows are indices into data.train. */
struct relift {
    int64_t *row, n, capacity;               /* the queue, newest first; saved */
    int64_t *fresh, n_fresh, fresh_capacity; /* found in this step, in the order of its groups */
    struct token_ids prompt_ids, ids;        /* scratch: prompts, demonstrations */
};

/* True if a verifier gave a verdict on the rollout; a timeout or a crash says nothing about the
 * answer. */
static bool is_verified(const struct batch *b, int64_t i)
{
    return b->verdict[i] != TARE_VERDICT_TIMED_OUT && b->verdict[i] != TARE_VERDICT_CRASHED;
}

static bool is_unsolved(const struct batch *b, int64_t m, double reward)
{
    bool any = false;
    for (int64_t i = b->group_begin[m]; i < b->group_begin[m + 1]; i++) {
        if (!is_verified(b, i)) continue;
        any = true;
        if (b->reward[i] > reward) return false;
    }
    return any;
}

static void forget_fresh(void *state)
{
    ((struct relift *)state)->n_fresh = 0;
}

/* Records the batch's unsolved questions. */
static tare_status note_unsolved(struct run *r, void *state, struct err *e)
{
    const struct batch *b = &r->batch;
    struct relift *l = state;
    TRY(mem_grow((void **)&l->fresh, &l->fresh_capacity, l->n_fresh + b->n_groups, sizeof *l->fresh, e));
    for (int64_t m = 0; m < b->n_groups; m++)
        if (b->row[m]->completion.data && is_unsolved(b, m, r->config->relift.reward))
            l->fresh[l->n_fresh++] = b->row[m] - r->engine.train.rows;
    return TARE_OK;
}

/* Puts the rows found in this step in front of the queue. */
static tare_status join_fresh(struct relift *l, struct err *e)
{
    TRY(mem_grow((void **)&l->row, &l->capacity, l->n + l->n_fresh + 1, sizeof *l->row, e));
    memmove(l->row + l->n_fresh, l->row, (size_t)l->n * sizeof *l->row);
    if (l->n_fresh) memcpy(l->row, l->fresh, (size_t)l->n_fresh * sizeof *l->row);
    l->n += l->n_fresh;
    l->n_fresh = 0;
    return TARE_OK;
}

/* Builds a batch of the chosen rows: prompts and demonstrations, one rollout in each group. */
static tare_status build_demonstrations(struct run *r, struct relift *l, struct chosen_rows chosen, struct batch *b, struct err *e)
{
    struct arena *a = &r->arena;
    const int64_t n = chosen.n;
    *b = (struct batch){.step = r->step + 1};
    TRY(rollout_prompts(r->engine.prompts, &chosen, &l->prompt_ids, b, a, e));
    TRY(arena_new(a, &b->group_begin, n + 1, e));
    TRY(arena_new(a, &b->token_begin, n + 1, e));
    l->ids.n = 0;
    for (int64_t m = 0; m < n; m++) {
        TRY(row_completion_encode(r, b->row[m], b->prompt_begin[m + 1] - b->prompt_begin[m], &l->ids, e));
        b->group_begin[m + 1] = m + 1;
        b->token_begin[m + 1] = l->ids.n;
    }
    b->ids = l->ids.data;
    b->n_rollouts = n;
    b->n_tokens = l->ids.n;
    return TARE_OK;
}

static tare_status train_on_newest(struct run *r, struct relift *l, struct err *e)
{
    const struct relift_config *c = &r->config->relift;
    const int64_t each = c->minibatch ? c->minibatch : c->rows;
    struct supervised_report sum = {0};
    double steps = 0;
    for (int64_t epoch = 0; epoch < c->epochs; epoch++)
        for (int64_t k = 0; k < c->rows; k += each) {
            struct supervised_report one;
            struct batch b;
            TRY(build_demonstrations(r, l, (struct chosen_rows){.data = &r->engine.train, .rows = l->row + k, .n = each}, &b, e));
            TRY(supervised_second_step(r->engine.trainer, &b, c->entropy_coef, &one, e));
            sum.loss += one.loss;
            sum.entropy += one.entropy;
            sum.grad_norm += one.grad_norm;
            sum.lr = one.lr;
            steps++;
        }
    observe_set(r->observe, "relift/loss", sum.loss / steps);
    observe_set(r->observe, "relift/entropy", sum.entropy / steps);
    observe_set(r->observe, "relift/grad_norm", sum.grad_norm / steps);
    observe_set(r->observe, "relift/lr", sum.lr);
    return TARE_OK;
}

static tare_status update_on_waiting(struct run *r, void *state, struct err *e)
{
    const int64_t wanted = r->config->relift.rows;
    struct relift *l = state;
    observe_set(r->observe, "relift/hard_questions", (double)l->n_fresh);
    TRY(join_fresh(l, e));
    if (l->n >= wanted) {
        TRY(train_on_newest(r, l, e));
        l->n -= wanted;
        memmove(l->row, l->row + wanted, (size_t)l->n * sizeof *l->row);
    }
    observe_set(r->observe, "relift/waiting", (double)l->n);
    observe_set(r->observe, "relift/optimizer_steps", (double)r->engine.trainer->second->optimizer_steps);
    return TARE_OK;
}

/* ---------------------------------------------------------------- before the run, and in its
 * checkpoints */

/* A completion has at most as many tokens as bytes, plus EOS, so only longer ones are encoded and
 * counted. */
static tare_status check_demonstration(const struct run *r, struct relift *l, const struct row *row, struct err *e)
{
    const int64_t context = r->engine.model->shape.max_position, most = r->config->rollout.max_new_tokens;
    const int64_t prompts = engine_prompt_limit(&r->engine, true), bytes = row->completion.size + 1;
    if (bytes <= most && prompts + bytes <= context) return TARE_OK;
    l->prompt_ids.n = l->ids.n = 0;
    TRY(prompts_encode(r->engine.prompts, row, &l->prompt_ids, e));
    return row_completion_encode(r, row, l->prompt_ids.n, &l->ids, e);
}

static tare_status check_demonstrations(struct run *r, void *state, struct err *e)
{
    const struct config *c = r->config;
    const struct dataset *d = &r->engine.train;
    int64_t rows = 0;
    const char *where = config_where(c, "relift", "rows");
    if (!r->engine.model->n_eos)
        FAIL(e, TARE_E_CONFIG, "%s: relift.rows: demonstrations end with an end-of-sequence id, and %s has none", where,
             c->model.path);
    for (int64_t i = 0; i < d->n; i++) {
        if (!d->rows[i].completion.data) continue;
        TRY(check_demonstration(r, state, &d->rows[i], e));
        rows++;
    }
    if (!rows) FAIL(e, TARE_E_CONFIG, "%s: relift.rows needs rows with a \"completion\", but %s has none", where, c->data.train);
    log_info("%lld of %lld rows have a demonstration; each supervised update uses %lld of them", (long long)rows, (long long)d->n,
             (long long)c->relift.rows);
    return TARE_OK;
}

static tare_status open_second_optimizer(struct run *r, void *state, struct err *e)
{
    (void)state;
    return supervised_add_second(r->engine.trainer, r->config, e);
}

static void free_rows(void *state)
{
    struct relift *l = state;
    mem_free(l->row);
    mem_free(l->fresh);
    token_ids_free(&l->prompt_ids);
    token_ids_free(&l->ids);
}

static tare_status save_waiting(const struct run *r, const void *state, struct state_writer *w, struct err *e)
{
    const struct relift *l = state;
    TRY(state_write_int(w, "relift_steps", r->engine.trainer->second->optimizer_steps, e));
    return state_write(w, "relift", l->n ? (const void *)l->row : "", l->n * (int64_t)sizeof *l->row, e);
}

/* Reports that the second optimizer was switched on or off since the checkpoint, so its moments are
 * missing or discarded. */
static tare_status report_switched(const struct run *r, const struct state_reader *s, struct err *e)
{
    int64_t steps;
    const bool is = r->engine.trainer->second != NULL, was = state_has(s, "relift");
    if (r->comm.rank || is == was) return TARE_OK;
    if (is) {
        log_info("relift.rows: the checkpoint was written without it; its optimizer starts with empty moments and an empty queue");
        return TARE_OK;
    }
    TRY(state_read_int(s, "relift_steps", &steps, e));
    log_warn(
        "relift.rows = 0: the moments of the supervised updates (%lld optimizer steps) and the %lld queued questions are discarded; if relift.rows is set again, both start empty",
        (long long)steps, (long long)(state_size(s, "relift") / (int64_t)sizeof *((struct relift *)0)->row));
    return TARE_OK;
}

static tare_status load_waiting(struct run *r, void *state, const struct state_reader *s, const char *folder, struct err *e)
{
    struct relift *l = state;
    struct second_optimizer *second = r->engine.trainer->second;
    const void *rows;
    int64_t bytes;
    l->n = l->n_fresh = 0;
    TRY(report_switched(r, s, e));
    if (!second || !state_has(s, "relift")) return TARE_OK;
    TRY(state_read_int(s, "relift_steps", &second->optimizer_steps, e));
    TRY(state_view(s, "relift", &rows, &bytes, e));
    const int64_t n = bytes / (int64_t)sizeof *l->row;
    TRY(mem_grow((void **)&l->row, &l->capacity, n + 1, sizeof *l->row, e));
    if (n) memcpy(l->row, rows, (size_t)n * sizeof *l->row);
    for (int64_t i = 0; i < n; i++)
        if (l->row[i] < 0 || l->row[i] >= r->engine.train.n || !r->engine.train.rows[l->row[i]].completion.data)
            FAIL(e, TARE_E_CORRUPT,
                 "%s: row %lld is queued for a supervised update, but data.train has no such row with a completion", folder,
                 (long long)l->row[i]);
    l->n = n;
    return TARE_OK;
}

static bool is_on(const struct config *c)
{
    return c->relift.rows > 0;
}

const struct learner_hook relift_hook = {
    .name = "ReLIFT",
    .state_size = sizeof(struct relift),
    .is_on = is_on,
    .check = check_demonstrations,
    .open = open_second_optimizer,
    .begin = forget_fresh,
    .after_join = HOOK_STAGE("hard", note_unsolved),
    .after_update = HOOK_STAGE("relift", update_on_waiting),
    .save = save_waiting,
    .load = load_waiting,
    .free = free_rows,
};
