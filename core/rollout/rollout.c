#include "rollout/rollout.h"

#include <stdlib.h>
#include <string.h>

tare_status rollout_sample_params(const struct rollout_config *c, int64_t vocab, const char *where, struct arena *arena,
                                  struct sample_params *out, struct err *e)
{
    const char *text = c->stop_ids ? c->stop_ids : "";
    int32_t *stop;
    *out = (struct sample_params){.temperature = c->temperature,
                                  .top_p = c->top_p,
                                  .min_p = c->min_p,
                                  .top_k = c->top_k,
                                  .max_new_tokens = c->max_new_tokens,
                                  .ignore_eos = c->ignore_eos};
    TRY(arena_new(arena, &stop, strlen(text) / 2 + 1, e));
    out->stop = stop;
    bool more = text[strspn(text, " ")] != 0;
    for (const char *at = text; more;) {
        char *end;
        const long id = strtol(at, &end, 10);
        const char *after = end + strspn(end, " ");
        more = *after == ',';
        if (end == at || id < 0 || id >= vocab || (*after && !more))
            FAIL(e, TARE_E_CONFIG,
                 "%s: rollout.stop_ids = '%s': invalid at '%s': must be token ids from 0 to %lld, separated by commas", where, text,
                 at, (long long)vocab - 1);
        stop[out->n_stop++] = (int32_t)id;
        at = after + more;
    }
    return TARE_OK;
}
#include "data/dataset.h"

void rollout_columns(struct batch *b, const struct sample_output *o)
{
    b->n_rollouts = o->n;
    b->n_tokens = o->n_tokens;
    b->token_begin = o->token_begin;
    b->ids = o->ids;
    b->logprob = o->logprob;
    b->entropy = o->entropy;
    b->finish = o->finish;
    b->sampled = o->sampled;
    b->n_turns = o->n_turns;
    b->turn_begin = o->turn_begin;
    b->act_begin = o->act_begin;
    b->act_end = o->act_end;
    b->turn_finish = o->turn_finish;
}

tare_status rollout_run(struct sampler *s, const struct rollout_job *job, struct batch *b, struct arena *arena, struct err *e)
{
    struct sample_request *requests;
    struct sample_output out;
    TRY(arena_new(arena, &requests, b->n_groups, e));
    for (int64_t m = 0; m < b->n_groups; m++)
        requests[m] = (struct sample_request){.prompt = b->prompt_ids + b->prompt_begin[m],
                                              .prompt_len = b->prompt_begin[m + 1] - b->prompt_begin[m],
                                              .n_samples = b->samples && b->samples[m] ? b->samples[m] : job->config->group_size,
                                              .prompt_uid = b->prompt_uid[m],
                                              .occurrence = b->occurrence[m],
                                              .where = b->row && b->row[m] ? b->row[m]->where : NULL};
    const struct sample_job samples = {job->params, job->key, requests, b->n_groups, job->cancelled, job->episodes};
    TRY(sampler_run(s, &samples, arena, &out, e));
    TRY(arena_new_raw(arena, &b->group_begin, b->n_groups + 1, e));
    b->group_begin[0] = 0;
    for (int64_t m = 0; m < b->n_groups; m++) b->group_begin[m + 1] = b->group_begin[m] + requests[m].n_samples;
    rollout_columns(b, &out);
    return TARE_OK;
}
