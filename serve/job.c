#include "serve/job.h"

#include "base/clock.h"

#include <string.h>
#include <time.h>

static void job_free(struct job *job)
{
    for (int64_t i = 0; job->parts && i < job->r.n_prompts; i++) {
        choice_list_free(&job->parts[i].tokens);
        str_free(&job->parts[i].text);
    }
    for (int64_t i = 0; job->choices && i < job->r.n_prompts * job->r.n; i++) choice_free(&job->choices[i]);
    mem_free(job->parts);
    mem_free(job->choices);
    str_free(&job->out);
    request_free(&job->r);
    mem_free(job);
}

void job_release(struct job *job)
{
    if (!--job->owners) job_free(job);
}

void job_wake(struct job *job)
{
    if (!job->waits) return;
    job->server->mhd->resume_connection(job->waits);
    job->waits = NULL;
}

/* Stores a prompt's text and the offsets of its tokens in it. */
static tare_status echo_prompt(struct part *p, const struct request *r, struct err *e)
{
    OWNED(token_stream_free) struct token_stream stream = {0};
    token_stream_init(&stream, r->model->engine.tokenizer, true);
    for (int64_t i = r->begin[p->index]; i < r->begin[p->index + 1]; i++) {
        TRY(choice_list_add(&p->tokens, r->ids.data[i], p->text.size, e));
        TRY(token_stream_push(&stream, r->ids.data[i], &p->text, e));
    }
    return token_stream_end(&stream, &p->text, e);
}

static tare_status job_new(struct server *s, struct request *r, struct job **out, struct err *e)
{
    struct job *job;
    TRY(mem_new((int64_t)sizeof *job, (void **)&job, e));
    *out = job;
    job->server = s;
    job->r = *r;
    *r = (struct request){0};
    job->open = job->r.n_prompts * job->r.n;
    TRY(mem_new(job->r.n_prompts * (int64_t)sizeof *job->parts, (void **)&job->parts, e));
    TRY(mem_new(job->open * (int64_t)sizeof *job->choices, (void **)&job->choices, e));
    for (int64_t i = 0; i < job->r.n_prompts; i++) job->parts[i] = (struct part){.job = job, .index = i};
    for (int64_t i = 0; i < job->open; i++) choice_init(&job->choices[i], &job->r);
    for (int64_t i = 0; job->r.echo && i < job->r.n_prompts; i++) TRY(echo_prompt(&job->parts[i], &job->r, e));
    const struct request *q = &job->r;
    job->params = (struct sample_params){.temperature = q->temperature,
                                         .top_p = q->top_p,
                                         .min_p = q->min_p,
                                         .top_k = q->top_k,
                                         .max_new_tokens = q->max_tokens < 0 ? INT32_MAX
                                                           : q->max_tokens   ? q->max_tokens
                                                                             : 1,
                                         .stop = q->stop_ids,
                                         .n_stop = q->n_stop_ids,
                                         .ignore_eos = q->ignore_eos};
    job->created = (int64_t)time(NULL);
    job->arrived = clock_seconds();
    return TARE_OK;
}

/* Refuses a job that exceeds the capacity of batch and queue. Under the lock. */
static tare_status check_capacity(const struct server *s, const struct job *job, struct refusal *no)
{
    const struct served *m = job->r.model;
    const int64_t capacity = m->batch + s->options->queue;
    if (s->stopping) REFUSE(no, 503, "stopping", NULL, TARE_E_STATE, "the server is stopping and accepts no new requests");
    if (job->open > capacity)
        REFUSE(no, 400, "invalid_value", "n", TARE_E_RANGE,
               "too many completions in one request: %lld; batch and queue have capacity for %lld", (long long)job->open,
               (long long)capacity);
    if (m->pending + job->open > capacity)
        REFUSE(no, 429, "queue_full", NULL, TARE_E_STATE,
               "%lld completions are running or waiting; the capacity is %lld; try again later", (long long)m->pending,
               (long long)capacity);
    return TARE_OK;
}

tare_status job_submit(struct server *s, struct request *r, struct job **out, struct refusal *no)
{
    struct job *job = NULL;
    tare_status status = job_new(s, r, &job, &no->e);
    if (status) {
        request_refuse(no, 500, "no_memory", NULL);
        if (job) job_free(job);
        return status;
    }
    pthread_mutex_lock(&s->lock);
    status = check_capacity(s, job, no);
    if (!status) {
        job->owners = 2;
        job->r.model->pending += job->open;
        snprintf(job->id, sizeof job->id, "%s-%llx-%lld", job->r.chat ? "chatcmpl" : "cmpl", (long long)s->began,
                 (long long)++s->n_requests);
        job->before = s->last;
        if (s->last)
            s->last->after = job;
        else
            s->first = job;
        s->last = job;
        pthread_cond_signal(&s->work);
    }
    pthread_mutex_unlock(&s->lock);
    if (status)
        job_free(job);
    else
        *out = job;
    return status;
}
