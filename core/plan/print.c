/* Print the plan as a table and as a JSON object. */
#include "plan/plan.h"

#include "model/hf_config.h"

#include <stdio.h>

const char *const PLAN_CLASS_NAMES[PLAN_CLASSES] = {"weights",   "gradients", "moments",     "sampler", "gathered",
                                                    "reference", "kv_cache",  "activations", "logits",  "prefill",
                                                    "working",   "margin",    "staging"};

static const char *const CLASS_TEXT[PLAN_CLASSES] = {"fp32 masters",
                                                     "fp32",
                                                     "both AdamW moments, fp32",
                                                     "the compute copy of all products, the table of positions",
                                                     "units of weights and gradients that are gathered together",
                                                     "the frozen policy of the KL term",
                                                     "",
                                                     "",
                                                     "logits of one chunk of head rows in the update",
                                                     "the sampler's passes, with their logits",
                                                     "rounded copies, the libraries' workspace",
                                                     "fragmentation, and buffers that grow while the old one exists",
                                                     "host memory: a tensor being read, the step's tokens"};
#define SHARD_NAME(ID, TEXT) TEXT,
static const char *const SHARD_NAMES[] = {CHOICES_SHARD(SHARD_NAME)};

#define LL(X) ((long long)(X))

static tare_status print_head(const struct plan *p, struct str *out, struct err *e)
{
    const struct plan_input *in = &p->in;
    const struct model_shape *s = &in->shape;
    char b[32];
    TRY(str_addf(out, e, "model    %s, %.4g %s parameters: L %lld, C %lld, H %lld, J %lld, D %lld, F %lld, V %lld, head %s, %s\n",
                 hf_family(s->arch, NULL), (double)p->params / (p->params < 1000000000 ? 1e6 : 1e9),
                 p->params < 1000000000 ? "million" : "billion", LL(s->layers), LL(s->hidden), LL(s->heads), LL(s->kv_heads),
                 LL(s->head_dim), LL(s->intermediate), LL(s->vocab), s->tied ? "tied" : "untied",
                 config_chosen(in->config, "model", "dtype")));
    if (in->config->lora.rank)
        TRY(str_addf(out, e, "lora     rank %lld on %s: %.4g million parameters are trained, the rest is frozen in %s\n",
                     LL(in->config->lora.rank), in->config->lora.targets, (double)p->trained / 1e6,
                     config_chosen(in->config, "model", in->config->model.weights == WEIGHTS_INT8 ? "weights" : "dtype")));
    TRY(str_addf(out, e, "ranks    %lld, sharding %s, %s%s%s%s\n", LL(in->ranks),
                 SHARD_NAMES[in->ranks > 1 ? in->shard : SHARD_NONE],
                 in->machine.gpu ? "each on "
                 : in->hosts > 1 ? "on several hosts: "
                                 : "on one host: ",
                 in->machine.name, in->machine.memory > 0 ? " with " : "",
                 in->machine.memory > 0 ? str_amount(b, in->machine.memory, "B") : ""));
    TRY(str_addf(out, e, "a step   %lld prompts of at most %lld tokens, %lld rollouts each of at most %lld\n",
                 LL(in->config->rollout.prompts), LL(p->prompt_tokens), LL(in->config->rollout.group_size), LL(p->new_tokens)));
    if (p->new_tokens < in->config->rollout.max_new_tokens)
        TRY(str_addf(
            out, e,
            "warning  the longest prompts leave only %lld of the context's %lld tokens for a completion, but rollout.max_new_tokens is %lld; set rollout.max_prompt_tokens to the longest prompt\n",
            LL(p->new_tokens), LL(s->max_position), LL(in->config->rollout.max_new_tokens)));
    return str_add(out, "\n", 1, e);
}

static tare_status print_cache(const struct plan *p, struct str *out, struct err *e)
{
    char reader[64] = "a step";
    if (p->kv_eval_rows) snprintf(reader, sizeof reader, "an evaluation of %lld questions", LL(p->kv_eval_rows));
    return str_addf(out, e, "%lld tokens of %lld bytes; %lld full-length completions at once; %s needs %lld tokens",
                    LL(p->kv_tokens), LL(p->kv_token_bytes), LL(p->kv_sequences), reader, LL(p->kv_wanted));
}

static tare_status print_memory(const struct plan *p, struct str *out, struct err *e)
{
    const bool differ = p->first.total != p->last.total;
    char a[32], b[32];
    TRY(str_addf(out, e, "memory            %9s%s\n", differ ? "rank 0" : "each rank", differ ? "    last rank" : ""));
    for (int i = 0; i < PLAN_CLASSES; i++) {
        if (!p->first.bytes[i]) continue;
        TRY(str_addf(out, e, "  %-12s %12s", PLAN_CLASS_NAMES[i], str_amount(a, (double)p->first.bytes[i], "B")));
        if (differ) TRY(str_addf(out, e, " %12s", str_amount(b, (double)p->last.bytes[i], "B")));
        TRY(str_addf(out, e, "   %s", CLASS_TEXT[i]));
        if (i == PLAN_KV) TRY(print_cache(p, out, e));
        if (i == PLAN_ACTIVATIONS)
            TRY(str_addf(out, e, "micro-batch of %lld tokens, %lld targets, recompute %s", LL(p->micro_rows), LL(p->micro_targets),
                         config_chosen(p->in.config, "train", "recompute")));
        TRY(str_add(out, "\n", 1, e));
    }
    TRY(str_addf(out, e, "  %-12s %12s", p->in.machine.gpu ? "device" : "total", str_amount(a, (double)p->first.device, "B")));
    if (differ) TRY(str_addf(out, e, " %12s", str_amount(b, (double)p->last.device, "B")));
    return str_add(out, "\n\n", 2, e);
}

/* Print the keys found by find_ranks. */
static tare_status print_ranks(const struct plan *p, struct str *out, struct err *e)
{
    const int64_t tokens = p->prompt_tokens + p->tokens_needed;
    TRY(str_addf(out, e, "it fits with %sdist.ranks=%lld",
                 p->n_advice > 1 ? "these and "
                 : p->n_advice   ? "this and "
                                 : "",
                 LL(p->ranks_needed)));
    if (p->ranks_needed > p->in.gradient_shards) TRY(str_addf(out, e, " dist.gradient_shards=%lld", LL(p->ranks_needed)));
    if (p->hosts_needed) TRY(str_addf(out, e, " plan.hosts=%lld", LL(p->hosts_needed)));
    if (p->tokens_needed)
        TRY(str_addf(out, e, " rollout.max_new_tokens=%lld train.micro_tokens=%lld rollout.kv_tokens=%lld", LL(p->tokens_needed),
                     LL(tokens), LL(tokens + KV_BLOCK)));
    return str_add(out, "\n", 1, e);
}

static tare_status print_advice(const struct plan *p, struct str *out, struct err *e)
{
    char a[32];
    for (int i = 0; i < p->n_advice; i++)
        TRY(str_addf(out, e, "  %s=%s saves %s%s\n", p->advice[i].key, p->advice[i].value, str_amount(a, p->advice[i].saves, "B"),
                     p->in.ranks > 1 ? " per rank" : ""));
    if (p->fits_with_advice) return str_add(out, p->n_advice > 1 ? "with these it fits\n" : "with this it fits\n", -1, e);
    TRY(str_addf(out, e, "%s it does not fit; ",
                 p->n_advice > 1 ? "even with these"
                 : p->n_advice   ? "even with this"
                                 : "with smaller caches and micro-batches"));
    if (!p->ranks_needed)
        TRY(str_add(out, "use more memory per rank, or a smaller model\n", -1, e));
    else
        TRY(print_ranks(p, out, e));
    if (p->adapters_need > 0)
        TRY(str_addf(out, e,
                     "or train adapters instead of all weights: with lora.rank=%d%s on dist.ranks=%lld %s needs %s and fits\n",
                     PLAN_ADAPTER_RANK, p->n_advice ? " and the changes above," : "", LL(p->adapters_ranks),
                     p->in.machine.gpu ? "a device" : "a host", str_amount(a, p->adapters_need, "B")));
    return TARE_OK;
}

static tare_status print_verdict(const struct plan *p, struct str *out, struct err *e)
{
    char a[32], b[32], c[32], nccl[64] = "";
    const char *what = p->in.machine.gpu ? "a device" : "a host";
    if (p->nccl > 0) snprintf(nccl, sizeof nccl, ", %s for NCCL", str_amount(a, p->nccl, "B"));
    if (p->fits < 0)
        return str_addf(out, e, "%s needs %s; give plan.memory to check whether it fits\n", what, str_amount(a, p->need, "B"));
    TRY(str_addf(out, e, "%s: %s needs %s of %s (%s reserved%s)", p->fits ? "fits" : "does not fit", what,
                 str_amount(a, p->need, "B"), str_amount(b, p->in.machine.memory, "B"), str_amount(c, p->in.machine.reserve, "B"),
                 nccl));
    if (p->fits)
        return str_addf(out, e, ", %s free; the key/value cache could have %lld tokens\n", str_amount(a, p->budget - p->need, "B"),
                        LL(p->kv_free));
    TRY(str_addf(out, e, ", %s too much\n", str_amount(a, p->need - p->budget, "B")));
    return print_advice(p, out, e);
}

tare_status plan_print(const struct plan *p, struct str *out, struct err *e)
{
    TRY(print_head(p, out, e));
    TRY(print_memory(p, out, e));
    return print_verdict(p, out, e);
}

/* ---- JSON */

static json_t *rank_json(const struct plan_rank *r, int64_t rank)
{
    json_t *o = json_object(), *classes = json_object();
    for (int i = 0; i < PLAN_CLASSES; i++) json_object_set_new(classes, PLAN_CLASS_NAMES[i], json_integer(r->bytes[i]));
    json_object_set_new(o, "rank", json_integer(rank));
    json_object_set_new(o, "prompts", json_integer(r->groups));
    json_object_set_new(o, "bytes", classes);
    json_object_set_new(o, "device", json_integer(r->device));
    json_object_set_new(o, "host", json_integer(r->host));
    json_object_set_new(o, "total", json_integer(r->total));
    return o;
}

static json_t *machine_json(const struct plan *p)
{
    const struct plan_machine *m = &p->in.machine;
    return json_pack("{s:s, s:b, s:f, s:f, s:f}", "name", m->name, "gpu", (int)m->gpu, "memory", m->memory, "reserve", m->reserve,
                     "nccl", p->nccl);
}

static json_t *advice_json(const struct plan *p)
{
    json_t *list = json_array();
    for (int i = 0; i < p->n_advice; i++)
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:f}", "key", p->advice[i].key, "value", p->advice[i].value, "saves", p->advice[i].saves));
    return list;
}

tare_status plan_json(const struct plan *p, json_t **out, struct err *e)
{
    const struct plan_input *in = &p->in;
    json_t *ranks = json_array(), *o = json_object();
    *out = o;
    /* the first ranks have one prompt more */
    for (int64_t r = 0; r < in->ranks; r++)
        json_array_append_new(ranks, rank_json(r < in->config->rollout.prompts % in->ranks ? &p->first : &p->last, r));
    json_object_set_new(o, "parameters", json_integer(p->params));
    json_object_set_new(o, "shard", json_string(SHARD_NAMES[in->ranks > 1 ? in->shard : SHARD_NONE]));
    json_object_set_new(o, "machine", machine_json(p));
    json_object_set_new(o, "ranks", ranks);
    json_object_set_new(o, "kv_cache",
                        json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "tokens", (json_int_t)p->kv_tokens, "wanted",
                                  (json_int_t)p->kv_wanted, "evaluation_rows", (json_int_t)p->kv_eval_rows, "sequences",
                                  (json_int_t)p->kv_sequences, "token_bytes", (json_int_t)p->kv_token_bytes, "available",
                                  (json_int_t)p->kv_free));
    json_object_set_new(o, "micro_batch",
                        json_pack("{s:I, s:I}", "rows", (json_int_t)p->micro_rows, "targets", (json_int_t)p->micro_targets));
    json_object_set_new(o, "need", json_real(p->need));
    json_object_set_new(o, "budget", json_real(p->budget));
    json_object_set_new(o, "fits", p->fits < 0 ? json_null() : json_boolean(p->fits));
    json_object_set_new(o, "advice", advice_json(p));
    json_object_set_new(o, "fits_with_advice", json_boolean(p->fits == 0 && p->fits_with_advice));
    json_object_set_new(o, "ranks_needed", p->ranks_needed ? json_integer(p->ranks_needed) : json_null());
    json_object_set_new(o, "hosts_needed", p->hosts_needed ? json_integer(p->hosts_needed) : json_null());
    json_object_set_new(o, "adapters_ranks", p->adapters_need > 0 ? json_integer(p->adapters_ranks) : json_null());
    json_object_set_new(o, "adapters_need", p->adapters_need > 0 ? json_real(p->adapters_need) : json_null());
    json_object_set_new(o, "tokens_needed", p->tokens_needed ? json_integer(p->tokens_needed) : json_null());
    if (json_object_size(o) != 16) {
        json_decref(o);
        *out = NULL;
        FAIL(e, TARE_E_NOMEM, "no memory to print the plan as JSON");
    }
    return TARE_OK;
}
