/* Mean reward on the evaluation rows, sampled as `tare eval` samples them with the same
 * configuration (engine_evaluation_rollout) and verified by the run's own verifiers. Draws are
 * keyed by seed and row, so two evaluations of a run differ by the weights alone. */
#include "loop/evaluate.h"

#include "base/log.h"
#include "batch/turns.h"
#include "loop/run.h"

#include <stdio.h>
#include <string.h>

enum { PARTS = sizeof((struct evaluation){0}.parts) / sizeof(struct evaluation_part) };

static struct evaluation_part *part_of(struct evaluation *v, tare_text subject)
{
    for (int64_t k = 0; k < v->n_parts; k++)
        if (v->parts[k].subject.size == subject.size && !memcmp(v->parts[k].subject.data, subject.data, (size_t)subject.size))
            return &v->parts[k];
    v->more_parts = v->n_parts == PARTS;
    if (v->more_parts) return NULL;
    v->parts[v->n_parts] = (struct evaluation_part){.subject = subject};
    return &v->parts[v->n_parts++];
}

static tare_status evaluate_rows(struct run *r, int64_t begin, int64_t n, struct evaluation *v, struct err *e)
{
    struct batch b = {.step = r->step};
    int64_t rows[EVAL_ROWS_AT_ONCE];
    for (int64_t i = 0; i < n; i++) rows[i] = begin + i;
    arena_reset(&r->eval_arena);
    const struct collect_request request = {.chosen = {.data = &r->engine.eval, .rows = rows, .n = n},
                                            .key = rng_key((uint64_t)r->config->run.seed, RNG_EVAL)};
    TRY(collector_run(&r->eval_collector, &request, &b, e));
    for (int64_t m = 0; m < b.n_groups; m++) {
        struct evaluation_part *part = b.row[m]->subject.data ? part_of(v, b.row[m]->subject) : NULL;
        for (int64_t i = b.group_begin[m]; i < b.group_begin[m + 1]; i++) {
            v->reward += b.reward[i];
            v->length += (double)batch_length(&b, i);
            v->samples++;
            if (part) {
                part->reward += b.reward[i];
                part->n++;
            }
        }
    }
    v->rows += n;
    return TARE_OK;
}

static tare_status evaluate_all(struct run *r, struct evaluation *v, struct err *e)
{
    const int64_t all = r->engine.eval.n;
    for (int64_t at = 0, n; at < all; at += n) {
        n = config_eval_rows(r->config, all - at);
        TRY(evaluate_rows(r, at, n, v, e));
    }
    return TARE_OK;
}

tare_status evaluate(struct run *r, struct evaluation *v, struct err *e)
{
    const enum run_state before = r->state;
    *v = (struct evaluation){0};
    r->state = RUN_EVALUATING;
    const tare_status status = evaluate_all(r, v, e);
    r->state = before;
    if (status) return err_prefix(e, "evaluation");
    v->reward /= (double)v->samples;
    v->length /= (double)v->samples;
    for (int64_t k = 0; k < v->n_parts; k++) v->parts[k].reward /= (double)v->parts[k].n;
    return TARE_OK;
}

tare_status evaluate_when_due(struct run *r, int64_t step, struct err *e)
{
    const struct config *c = r->config;
    struct evaluation *v = &r->evaluation;
    const bool last = step == c->train.steps && c->eval.after, first = step == 0 && c->eval.before;
    if (!r->engine.eval.n || (!last && !first && !(step && c->eval.every && step % c->eval.every == 0))) return TARE_OK;
    TRY(evaluate(r, v, e));
    if (v->more_parts && r->evaluated_step < 0)
        log_warn("evaluation: the rows have more than %d subjects; eval/reward/SUBJECT is recorded for the first %d only", PARTS,
                 PARTS);
    r->evaluated_step = step;
    observe_set(r->observe, "eval/reward", v->reward);
    observe_set(r->observe, "eval/response_length", v->length);
    for (int64_t k = 0; k < v->n_parts; k++) {
        char name[200];
        snprintf(name, sizeof name, "eval/reward/%.*s", (int)v->parts[k].subject.size, v->parts[k].subject.data);
        observe_set(r->observe, name, v->parts[k].reward);
    }
    log_info("step %lld: evaluation reward %.3f over %lld rows x %lld samples, length %.1f", (long long)step, v->reward,
             (long long)v->rows, (long long)(v->samples / v->rows), v->length);
    return TARE_OK;
}
