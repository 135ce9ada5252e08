/* Walks a prefill, a decoded token, a micro-batch and an optimizer step, and prints what each launches. */
#include "plan/launches.h"

#include "plan/counted.h"
#include "update/largest.h"
#include "update/optimizer.h"

#include <stdio.h>
#include <stdlib.h>

const char *const LAUNCH_STAGE_NAMES[LAUNCH_STAGES] = {"prefill", "decode", "micro_batch", "optimizer"};
#define LL(X) ((long long)(X))

/* ---- the walk */

/* Typical rows where they are given, else the longest. */
static int64_t typical(int64_t given, int64_t longest)
{
    return given > 0 && given < longest ? given : longest;
}

struct draw {
    int64_t prompts, samples, prompt_tokens, new_tokens;
};

static tare_status sample(struct counted *x, struct draw d, struct launch_stage_cost *into, struct err *e)
{
    const struct sample_params params = {.temperature = 1, .top_p = 1, .max_new_tokens = d.new_tokens, .ignore_eos = true};
    struct sample_request *requests;
    struct sample_output out;
    TRY(counted_requests(x, d.prompts, d.samples, d.prompt_tokens, &requests, e));
    launches_into(into);
    const tare_status status = sampler_run(
        x->sampler, &(struct sample_job){&params, rng_key(0, RNG_TRAIN), requests, d.prompts, NULL}, &x->arena, &out, e);
    launches_into(NULL);
    return status;
}

/* A cache like a run's: with room for all sequences to grow, so that they start together. */
static tare_status reserve(struct counted *x, struct draw d, struct err *e)
{
    struct sample_request *requests;
    struct sampler_need need;
    TRY(counted_requests(x, d.prompts, d.samples, d.prompt_tokens, &requests, e));
    return sampler_reserve(x->sampler, requests, d.prompts, x->plan->new_tokens + 4 * KV_BLOCK, &need, e);
}

static void subtract(struct launch_stage_cost *from, const struct launch_stage_cost *s)
{
    int kept = 0;
    for (int i = 0; i < s->n; i++) { /* s is the beginning of what `from` walked, so its kernels come first there, in its order */
        struct launch *l = &from->kernel[i];
        l->launches -= s->kernel[i].launches;
        l->flops -= s->kernel[i].flops;
        l->bytes -= s->kernel[i].bytes;
        l->seconds -= s->kernel[i].seconds;
        l->of_compute -= s->kernel[i].of_compute;
    }
    for (int i = 0; i < from->n; i++)
        if (from->kernel[i].launches) from->kernel[kept++] = from->kernel[i];
    from->n = kept;
    from->useful -= s->useful;
    from->seconds -= s->seconds;
}

/* A token in the middle of the completions: two tokens without the prefill that brings the first. */
static tare_status walk_sampling(struct counted *x, struct launches *out, struct err *e)
{
    const struct plan *p = x->plan;
    const int64_t G = p->in.config->rollout.group_size, n = p->decode_batch > 0 ? p->decode_batch : 1;
    const int64_t samples = G < n ? G : n, prompts = n / samples;
    const int64_t prompt = typical(p->in.prompt_tokens, p->prompt_tokens), half = typical(p->in.response_tokens, p->new_tokens) / 2;
    const int64_t most = p->in.shape.max_position - 2, keys = prompt + half < most ? prompt + half : most;
    struct launch_stage_cost *before = calloc(1, sizeof *before), *decode = &out->stage[LAUNCH_DECODE];
    if (!before) FAIL(e, TARE_E_NOMEM, "no memory for the table of kernels");
    tare_status status = sampler_new(x->model, p->in.config->rollout.batch, 0, &x->sampler, e);
    const struct draw one = {prompts, samples, keys, 1}, two = {prompts, samples, keys, 2};
    if (!status) status = reserve(x, two, e);
    if (!status) status = sample(x, two, NULL, e); /* buffers get their sizes */
    if (!status) status = sample(x, (struct draw){prompts, samples, prompt, 1}, &out->stage[LAUNCH_PREFILL], e);
    if (!status) status = sample(x, one, before, e);
    if (!status) status = sample(x, two, decode, e);
    subtract(decode, before);
    free(before);
    snprintf(out->stage[LAUNCH_PREFILL].what, sizeof decode->what, "prefill of %lld prompts of %lld tokens", LL(prompts),
             LL(prompt));
    snprintf(decode->what, sizeof decode->what, "one decoded token of %lld sequences with %lld keys", LL(prompts * samples),
             LL(keys));
    return status;
}

static tare_status walk_update(struct counted *x, struct launches *out, struct err *e)
{
    const struct plan *p = x->plan;
    struct launch_stage_cost *micro = &out->stage[LAUNCH_MICRO_BATCH], *step = &out->stage[LAUNCH_OPTIMIZER];
    struct update_largest l =
        counted_largest(x, typical(p->in.prompt_tokens, p->prompt_tokens), typical(p->in.response_tokens, p->new_tokens));
    struct update_memory m;
    double norm, lr;
    bool skipped;
    l.forward = false; /* the policy's forward and backward pass alone */
    TRY(counted_update(x, e));
    launches_into(micro);
    tare_status status = update_run_largest(x->trainer, &l, &m, e);
    launches_into(step);
    if (!status) status = optimizer_step(x->trainer, &norm, &lr, &skipped, e);
    launches_into(NULL);
    TRY(status);
    snprintf(micro->what, sizeof micro->what, "forward and backward of a micro-batch of %lld rows, %lld of them targets",
             LL(m.rows), LL(m.targets));
    snprintf(step->what, sizeof step->what, "an optimizer step, with the refresh of the compute copy");
    return TARE_OK;
}

static tare_status walk(struct counted *x, struct launches *out, struct err *e)
{
    const struct plan_machine *m = &x->in->machine;
    TRY(counted_backend(x, e));
    launches_tally(&x->kernels,
                   (struct launch_rates){m->flops, m->bandwidth, x->in->config->run.deterministic == DETERMINISTIC_BATCH_INVARIANT,
                                         m->capability == 90});
    TRY(counted_model(x, e));
    TRY(walk_update(x, out, e));
    return walk_sampling(x, out, e);
}

tare_status launches_make(const struct plan *p, struct launches *out, struct err *e)
{
    OWNED(counted_free) struct counted x = {0};
    struct plan_counted unused;
    *out = (struct launches){0};
    if (!p->in.machine.gpu || !(p->in.machine.flops > 0) || !(p->in.machine.bandwidth > 0))
        FAIL(
            e, TARE_E_CONFIG,
            "--kernels is about a GPU whose peaks are known; give plan.device=NAME, or run.device=cuda with plan.flops and plan.bandwidth");
    counted_init(&x, p, &unused);
    return walk(&x, out, e);
}

/* ---- the table */

static int by_seconds(const void *a, const void *b)
{
    const double x = ((const struct launch *)a)->seconds, y = ((const struct launch *)b)->seconds;
    return (x < y) - (x > y);
}

static int64_t launches_of(const struct launch_stage_cost *s)
{
    int64_t n = 0;
    for (int i = 0; i < s->n; i++) n += s->kernel[i].launches;
    return n;
}

/* peak: operations a second; 0: the stage is not about them. */
static tare_status print_stage(const struct launch_stage_cost *s, double peak, struct str *out, struct err *e)
{
    struct launch_stage_cost sorted = *s;
    qsort(sorted.kernel, (size_t)sorted.n, sizeof *sorted.kernel, by_seconds);
    TRY(str_addf(out, e, "\n%s: at least %.4g ms, %lld launches", s->what, s->seconds * 1e3, LL(launches_of(s))));
    if (peak > 0 && s->seconds > 0) TRY(str_addf(out, e, ", at most %.1f %% of the peak", 100 * s->useful / s->seconds / peak));
    TRY(str_addf(out, e, "\n  %-22s %9s %12s %10s %12s %7s  %s\n", "kernel", "launches", "GFLOP", "GB", "at least ms", "share",
                 "bound by"));
    for (int i = 0; i < sorted.n; i++) {
        const struct launch *l = &sorted.kernel[i];
        TRY(str_addf(out, e, "  %-22s %9lld %12.4g %10.4g %12.4g %5.1f %%  %s\n", l->kernel, LL(l->launches), l->flops / 1e9,
                     l->bytes / 1e9, l->seconds * 1e3, s->seconds > 0 ? 100 * l->seconds / s->seconds : 0,
                     2 * l->of_compute > l->seconds ? "operations" : "memory"));
    }
    return TARE_OK;
}

tare_status launches_print(const struct plan *p, const struct launches *l, struct str *out, struct err *e)
{
    const struct plan_machine *m = &p->in.machine;
    TRY(str_addf(
        out, e,
        "\nkernels of the CUDA backend on %s, by arithmetic: %.4g TFLOP/s, %.4g TB/s, every launch at one of the two peaks\n"
        "(times are \"at least\": no kernel reaches a peak all the time, and the gaps between launches are not counted)\n",
        m->name, m->flops / 1e12, m->bandwidth / 1e12));
    for (int i = 0; i < LAUNCH_STAGES; i++)
        TRY(print_stage(&l->stage[i], i == LAUNCH_PREFILL || i == LAUNCH_MICRO_BATCH ? m->flops : 0, out, e));
    return TARE_OK;
}

static json_t *stage_json(const struct launch_stage_cost *s, const char *name)
{
    json_t *list = json_array();
    for (int i = 0; i < s->n; i++) {
        const struct launch *l = &s->kernel[i];
        json_array_append_new(list, json_pack("{s:s, s:I, s:f, s:f, s:f}", "kernel", l->kernel, "launches", (json_int_t)l->launches,
                                              "flops", l->flops, "bytes", l->bytes, "seconds", l->seconds));
    }
    return json_pack("{s:s, s:s, s:f, s:f, s:o}", "stage", name, "what", s->what, "seconds", s->seconds, "useful_flops", s->useful,
                     "kernels", list);
}

tare_status launches_json(const struct launches *l, json_t **out, struct err *e)
{
    *out = json_array();
    for (int i = 0; i < LAUNCH_STAGES; i++)
        if (json_array_append_new(*out, stage_json(&l->stage[i], LAUNCH_STAGE_NAMES[i]))) {
            json_decref(*out);
            *out = NULL;
            FAIL(e, TARE_E_NOMEM, "no memory for the kernels as JSON");
        }
    return TARE_OK;
}
