/* The computing thread: jobs join the sessions of their models, each iteration samples a token for
 * every running completion, and finished jobs leave. */
#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "serve/answer.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* ---- tokens */

/* Adds the unsent part of a choice to the output of its stream. */
static void stream_choice(struct job *job, int64_t i)
{
    struct server *s = job->server;
    struct err e;
    OWNED(str_free) struct str event = {0};
    tare_status status = answer_chunk(job, i, &event, &e);
    pthread_mutex_lock(&s->lock);
    if (!status && event.size) status = str_add(&job->out, event.data, event.size, &e);
    if (event.size) job_wake(job);
    pthread_mutex_unlock(&s->lock);
    if (status) {
        request_refuse(&job->failure, 500, "server_error", NULL);
        job->failure.e = e;
    }
}

static void fail_job(struct job *job, const struct err *e, int http, const char *code)
{
    if (job->failure.http) return;
    request_refuse(&job->failure, http, code, NULL);
    job->failure.e = *e;
}

static bool add_token(struct job *job, int64_t i, const struct session_token *t)
{
    struct choice *c = &job->choices[i];
    struct err e;
    bool more = false;
    if (c->done || job->failure.http) return false;
    if (choice_add(c, &job->r, t, &more, &e)) {
        fail_job(job, &e, 500, "server_error");
        return false;
    }
    if (!job->r.max_tokens) { /* only the prompt was requested */
        c->done = true;
        c->finish = FINISH_LENGTH;
        more = false;
    }
    if (c->done) job->open--;
    if (job->r.stream) stream_choice(job, i);
    return more;
}

bool batcher_listen(void *part, const struct session_token *t)
{
    const struct part *p = part;
    struct job *job = p->job;
    struct err e;
    if (job->first_token <= 0) job->first_token = clock_seconds();
    if (t->sample != SESSION_PROMPT) return add_token(job, p->index * job->r.n + t->sample, t);
    if (choice_info_set(&p->tokens.list[t->position], &job->r, t, &e)) fail_job(job, &e, 500, "server_error");
    return true;
}

/* ---- jobs */

/* Adds a job to its model's session. The completions of prompt i have the random key of line i + 1
 * of `tare generate` with the same seed and without an "id". */
static tare_status join_session(struct job *job, struct err *e)
{
    const struct request *r = &job->r;
    const bool tops = r->logprobs && r->top;
    for (int64_t i = 0; i < r->n_prompts; i++) {
        char line[40];
        snprintf(line, sizeof line, "line-%lld", (long long)i + 1);
        const struct session_request q = {.sample = {.prompt = r->ids.data + r->begin[i],
                                                     .prompt_len = r->begin[i + 1] - r->begin[i],
                                                     .n_samples = r->n,
                                                     .prompt_uid = fs_hash(line, (int64_t)strlen(line), 0),
                                                     .where = "the prompt"},
                                          .params = &job->params,
                                          .key = rng_derive(rng_key((uint64_t)r->seed, RNG_EVAL), 0),
                                          .prompt_rows = r->echo && r->logprobs,
                                          .token_rows = tops,
                                          .owner = &job->parts[i]};
        TRY(session_add(r->model->engine.sampler, &q, e));
    }
    return TARE_OK;
}

static void drop_job(struct job *job)
{
    for (int64_t i = 0; i < job->r.n_prompts; i++) session_drop(job->r.model->engine.sampler, &job->parts[i]);
}

/* Ends a stream. A stream that has not begun is answered with the failure's status instead. Under
 * the lock. */
static tare_status end_stream(struct job *job, struct err *e)
{
    if (job->failure.http && !job->streams && !job->out.size) return TARE_OK;
    if (job->failure.http) {
        TRY(str_add(&job->out, "data: ", -1, e));
        TRY(answer_refusal(&job->failure, &job->out, e));
        TRY(str_add(&job->out, "\n", 1, e));
    }
    return answer_end(job, &job->out, e);
}

/* Removes the job from the batcher. Under the lock. */
static void end_job(struct server *s, struct job *job)
{
    struct err e;
    const double now = clock_seconds();
    if (job->before)
        job->before->after = job->after;
    else
        s->first = job->after;
    if (job->after)
        job->after->before = job->before;
    else
        s->last = job->before;
    job->r.model->pending -= job->r.n_prompts * job->r.n;
    if (job->r.stream && !job->cancelled && end_stream(job, &e)) log_error(&e);
    if (job->first_token > 0) metrics_seconds(&s->metrics.first_token, job->first_token - job->arrived);
    if (!job->failure.http && !job->cancelled) metrics_seconds(&s->metrics.whole, now - job->arrived);
    job->ended = true;
    job_wake(job);
    job_release(job);
}

/* True if the client has closed a suspended connection, which libmicrohttpd does not read. */
static bool has_disconnected(const struct job *job)
{
    char byte;
    if (!job->waits) return false;
    const union MHD_ConnectionInfo *info = job->server->mhd->get_connection_info(job->waits, MHD_CONNECTION_INFO_CONNECTION_FD);
    const ssize_t n = info ? recv(info->connect_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) : 1;
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

/* True if a job must end: its client has left, its time is over, or the server stops. Under the
 * lock. */
static bool is_over(struct server *s, struct job *job)
{
    struct err e;
    if (!job->cancelled && has_disconnected(job)) job->cancelled = true;
    if (job->cancelled) {
        s->metrics.cancelled++;
        return true;
    }
    if (s->finish) {
        err_set(&e, TARE_E_CANCELLED, __FILE__, __LINE__, "the server has stopped");
        fail_job(job, &e, 503, "stopping");
    } else if (clock_seconds() - job->arrived > (double)s->options->timeout) {
        s->metrics.timed_out++;
        err_set(&e, TARE_E_CANCELLED, __FILE__, __LINE__, "the request exceeded its limit of %lld seconds",
                (long long)s->options->timeout);
        fail_job(job, &e, 504, "timeout");
    }
    return job->failure.http != 0;
}

/* Adds new jobs and removes finished ones before an iteration. Under the lock. */
static void sort_jobs(struct server *s)
{
    for (struct job *job = s->first, *next; job; job = next) {
        struct err e;
        next = job->after;
        if (!job->open) {
            end_job(s, job);
        } else if (is_over(s, job)) {
            if (job->joined) drop_job(job);
            end_job(s, job);
        } else if (!job->joined) {
            job->joined = true;
            if (!join_session(job, &e)) continue;
            fail_job(job, &e, e.code == TARE_E_NOMEM ? 500 : 400, "invalid_value");
            drop_job(job);
            end_job(s, job);
        }
    }
}

/* Fails the jobs of a model whose session ended with an error, and restarts the session. */
static void give_up(struct server *s, struct served *m, const struct err *why)
{
    struct err e;
    log_error(why);
    pthread_mutex_lock(&s->lock);
    for (struct job *job = s->first, *next; job; job = next) {
        next = job->after;
        if (job->r.model != m || !job->joined) continue;
        fail_job(job, why, 500, "server_error");
        end_job(s, job);
    }
    pthread_mutex_unlock(&s->lock);
    if (!models_restart(&s->models, m, batcher_listen, &e)) return;
    log_error(&e);
}

static void sample_tokens(struct server *s)
{
    for (int64_t i = 0; i < s->models.n; i++) {
        struct served *m = &s->models.list[i];
        struct err e;
        if (session_remaining(m->engine.sampler) && session_iterate(m->engine.sampler, &e)) give_up(s, m, &e);
    }
}

/* Copies the state of the sessions for /metrics. Under the lock. */
static void note_state(struct server *s)
{
    for (int64_t i = 0; i < s->models.n; i++) {
        struct served *m = &s->models.list[i];
        m->now = session_state(m->engine.sampler);
        m->stats = sampler_stats(m->engine.sampler);
    }
}

void *batcher_run(void *server)
{
    struct server *s = server;
    pthread_mutex_lock(&s->lock);
    while (s->first || !s->finish) {
        sort_jobs(s);
        note_state(s);
        if (s->first) {
            pthread_mutex_unlock(&s->lock);
            sample_tokens(s);
            pthread_mutex_lock(&s->lock);
        } else if (!s->finish) {
            pthread_cond_wait(&s->work, &s->lock);
        }
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}
