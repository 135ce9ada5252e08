#include "serve/metrics.h"

static const double BOUNDS[METRIC_BUCKETS] = {0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000, 3000};

void metrics_answer(struct metrics *m, int http)
{
    int i = 0;
    while (i < METRIC_STATUSES - 1 && m->answers[i].n && m->answers[i].http != http) i++;
    m->answers[i].http = http;
    m->answers[i].n++;
}

void metrics_seconds(struct histogram *h, double seconds)
{
    int i = 0;
    while (i < METRIC_BUCKETS && seconds > BOUNDS[i]) i++;
    h->count[i]++;
    h->sum += seconds;
}

static tare_status add_header(struct str *out, const char *name, const char *type, const char *help, struct err *e)
{
    return str_addf(out, e, "# HELP tare_%s %s\n# TYPE tare_%s %s\n", name, help, name, type);
}

static tare_status print_histogram(struct str *out, const char *name, const char *help, const struct histogram *h, struct err *e)
{
    int64_t n = 0;
    TRY(add_header(out, name, "histogram", help, e));
    for (int i = 0; i < METRIC_BUCKETS; i++) {
        n += h->count[i];
        TRY(str_addf(out, e, "tare_%s_bucket{le=\"%g\"} %lld\n", name, BOUNDS[i], (long long)n));
    }
    n += h->count[METRIC_BUCKETS];
    TRY(str_addf(out, e, "tare_%s_bucket{le=\"+Inf\"} %lld\n", name, (long long)n));
    return str_addf(out, e, "tare_%s_sum %.9g\ntare_%s_count %lld\n", name, h->sum, name, (long long)n);
}

/* A metric of each model. */
struct of_model {
    const char *name, *type, *help;
    int64_t (*value)(const struct served *s);
};

static int64_t get_running(const struct served *s)
{
    return s->now.running;
}

static int64_t get_waiting(const struct served *s)
{
    return s->pending > s->now.running ? s->pending - s->now.running : 0;
}

static int64_t prompt_tokens(const struct served *s)
{
    return s->stats.prompt_tokens;
}

static int64_t new_tokens(const struct served *s)
{
    return s->stats.new_tokens;
}

static int64_t decode_steps(const struct served *s)
{
    return s->stats.decode_steps;
}

static int64_t get_preemptions(const struct served *s)
{
    return s->stats.preemptions;
}

static int64_t drafted_tokens(const struct served *s)
{
    return s->stats.drafted;
}

static int64_t accepted_tokens(const struct served *s)
{
    return s->stats.accepted;
}

static int64_t cache_tokens(const struct served *s)
{
    return s->now.blocks * KV_BLOCK;
}

static int64_t cache_used(const struct served *s)
{
    return s->now.blocks_used * KV_BLOCK;
}

static const struct of_model OF_MODELS[] = {
    {"completions_running", "gauge", "Completions in the batch.", get_running},
    {"completions_waiting", "gauge", "Completions waiting for a slot in the batch.", get_waiting},
    {"prompt_tokens_total", "counter", "Prompt tokens computed.", prompt_tokens},
    {"generated_tokens_total", "counter", "Tokens sampled.", new_tokens},
    {"decode_steps_total", "counter", "Decoding passes, each with at least a token for every running completion.", decode_steps},
    {"drafted_tokens_total", "counter", "Tokens drafted for verification (rollout.speculate).", drafted_tokens},
    {"accepted_tokens_total", "counter", "Drafted tokens that were sampled.", accepted_tokens},
    {"preemptions_total", "counter", "Completions preempted for lack of cache and recomputed.", get_preemptions},
    {"cache_tokens", "gauge", "Capacity of the key/value cache in tokens.", cache_tokens},
    {"cache_tokens_used", "gauge", "Tokens of the key/value cache in use, in blocks of 16.", cache_used},
};

tare_status metrics_print(const struct metrics *m, const struct served_models *models, struct str *out, struct err *e)
{
    TRY(add_header(out, "requests_total", "counter", "Answers by HTTP status; a stream counts when it begins.", e));
    for (int i = 0; i < METRIC_STATUSES && m->answers[i].n; i++)
        TRY(str_addf(out, e, "tare_requests_total{status=\"%d\"} %lld\n", m->answers[i].http, (long long)m->answers[i].n));
    TRY(add_header(out, "requests_cancelled_total", "counter", "Requests whose client left before the end.", e));
    TRY(str_addf(out, e, "tare_requests_cancelled_total %lld\n", (long long)m->cancelled));
    TRY(add_header(out, "requests_timed_out_total", "counter", "Requests that ran out of time.", e));
    TRY(str_addf(out, e, "tare_requests_timed_out_total %lld\n", (long long)m->timed_out));
    for (size_t k = 0; k < sizeof OF_MODELS / sizeof *OF_MODELS; k++) {
        TRY(add_header(out, OF_MODELS[k].name, OF_MODELS[k].type, OF_MODELS[k].help, e));
        for (int64_t i = 0; i < models->n; i++)
            TRY(str_addf(out, e, "tare_%s{model=\"%s\"} %lld\n", OF_MODELS[k].name, models->list[i].name,
                         (long long)OF_MODELS[k].value(&models->list[i])));
    }
    TRY(print_histogram(out, "first_token_seconds", "Seconds from a request's arrival to its first token.", &m->first_token, e));
    return print_histogram(out, "request_seconds", "Seconds from a request's arrival to its last token.", &m->whole, e);
}
