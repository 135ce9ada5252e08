#include "serve/http.h"

#include "base/clock.h"
#include "base/log.h"
#include "serve/answer.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

/* ---- an exchange: a request and its answer */

struct exchange;
struct route {
    const char *method, *path;
    bool open, prefix; /* open: needs no key; prefix: with all paths below */
    enum MHD_Result (*answer)(struct exchange *x);
};

struct exchange {
    struct server *server;
    struct MHD_Connection *connection;
    const struct route *route;
    const char *rest; /* rest of the path after a prefix, during the call */
    struct str body;
    struct job *job;
    struct refusal no; /* http 0: none */
    bool drains;       /* the body is read although it is refused */
};

static enum MHD_Result send_with(struct exchange *x, int http, const char *type, struct MHD_Response *response)
{
    struct server *s = x->server;
    const struct mhd *mhd = s->mhd;
    if (!response) return MHD_NO;
    mhd->add_response_header(response, "Content-Type", type);
    if (http == 401) mhd->add_response_header(response, "WWW-Authenticate", "Bearer");
    if (http == 405) mhd->add_response_header(response, "Allow", x->route ? x->route->method : "GET");
    if (http == 429) mhd->add_response_header(response, "Retry-After", "1");
    pthread_mutex_lock(&s->lock);
    metrics_answer(&s->metrics, http);
    if (s->stopping) mhd->add_response_header(response, "Connection", "close");
    pthread_mutex_unlock(&s->lock);
    const enum MHD_Result result = mhd->queue_response(x->connection, (unsigned)http, response);
    mhd->destroy_response(response);
    return result;
}

static enum MHD_Result send_text(struct exchange *x, int http, const char *type, const struct str *text)
{
    return send_with(x, http, type,
                     x->server->mhd->create_response_from_buffer((size_t)text->size, text->data, MHD_RESPMEM_MUST_COPY));
}

static enum MHD_Result send_json(struct exchange *x, int http, tare_status status, struct str *text)
{
    const enum MHD_Result result = status ? MHD_NO : send_text(x, http, "application/json", text);
    str_free(text);
    return result;
}

static enum MHD_Result send_refusal(struct exchange *x, const struct refusal *no)
{
    struct str text = {0};
    struct err e;
    log_debug("%d: %s", no->http, no->e.message);
    return send_json(x, no->http, answer_refusal(no, &text, &e), &text);
}

/* ---- immediate answers */

static enum MHD_Result answer_health(struct exchange *x)
{
    struct str text = {0};
    struct err e;
    pthread_mutex_lock(&x->server->lock);
    const bool stopping = x->server->stopping;
    pthread_mutex_unlock(&x->server->lock);
    const tare_status status = str_addf(&text, &e, "{\"status\":\"%s\"}\n", stopping ? "stopping" : "ok");
    return send_json(x, stopping ? 503 : 200, status, &text);
}

static enum MHD_Result answer_metrics(struct exchange *x)
{
    struct server *s = x->server;
    struct str text = {0};
    struct err e;
    pthread_mutex_lock(&s->lock);
    const tare_status status = metrics_print(&s->metrics, &s->models, &text, &e);
    pthread_mutex_unlock(&s->lock);
    const enum MHD_Result result = status ? MHD_NO : send_text(x, 200, "text/plain; version=0.0.4", &text);
    str_free(&text);
    return result;
}

static enum MHD_Result answer_list(struct exchange *x)
{
    struct str text = {0};
    struct err e;
    return send_json(x, 200, answer_models(x->server, &text, &e), &text);
}

static tare_status find_model(const struct exchange *x, const struct served **m, struct refusal *no)
{
    *m = models_find(&x->server->models, x->rest);
    if (!*m)
        REFUSE(no, 404, "model_not_found", "model", TARE_E_NOT_FOUND, "unknown model '%.200s'; GET /v1/models lists the models",
               x->rest);
    return TARE_OK;
}

static enum MHD_Result answer_one(struct exchange *x)
{
    struct str text = {0};
    struct err e;
    const struct served *m;
    if (find_model(x, &m, &x->no)) return send_refusal(x, &x->no);
    return send_json(x, 200, answer_model(x->server, m, &text, &e), &text);
}

/* ---- completions */

/* Copies the next bytes of a stream: up to `capacity`. */
static ssize_t read_stream(void *exchange, uint64_t pos, char *out, size_t capacity)
{
    const struct exchange *x = exchange;
    struct job *job = x->job;
    ssize_t n = 0;
    (void)pos;
    pthread_mutex_lock(&x->server->lock);
    const int64_t unsent = job->out.size - job->sent;
    if (unsent) {
        n = unsent < (int64_t)capacity ? (ssize_t)unsent : (ssize_t)capacity;
        memcpy(out, job->out.data + job->sent, (size_t)n);
        job->sent += n;
        if (job->sent == job->out.size) {
            str_clear(&job->out);
            job->sent = 0;
        }
    } else if (job->ended) {
        n = MHD_CONTENT_READER_END_OF_STREAM;
    } else {
        job->waits = x->connection;
        x->server->mhd->suspend_connection(x->connection);
    }
    pthread_mutex_unlock(&x->server->lock);
    return n;
}

static enum MHD_Result send_stream(struct exchange *x)
{
    struct MHD_Response *response = x->server->mhd->create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, read_stream, x, NULL);
    if (response) x->server->mhd->add_response_header(response, "Cache-Control", "no-cache");
    return send_with(x, 200, "text/event-stream", response);
}

/* Returns true if the job has an answer or the beginning of one; otherwise suspends the connection
 * until it has. */
static bool is_ready(struct exchange *x)
{
    struct job *job = x->job;
    pthread_mutex_lock(&x->server->lock);
    const bool begins = job->r.stream && job->out.size, ready = job->ended || begins;
    if (begins) job->streams = true;
    if (!ready) {
        job->waits = x->connection;
        x->server->mhd->suspend_connection(x->connection);
    }
    pthread_mutex_unlock(&x->server->lock);
    return ready;
}

static enum MHD_Result send_completion(struct exchange *x, bool chat)
{
    struct server *s = x->server;
    if (!x->job) {
        struct request r = {0};
        tare_status status = request_read(&x->body, chat, &s->models, s->options, &r, &x->no);
        if (!status) status = job_submit(s, &r, &x->job, &x->no);
        request_free(&r);
        if (status) return send_refusal(x, &x->no);
    }
    if (!is_ready(x)) return MHD_YES;
    if (x->job->streams) return send_stream(x);
    if (x->job->failure.http) return send_refusal(x, &x->job->failure);
    struct str text = {0};
    struct err e;
    return send_json(x, 200, answer_whole(x->job, &text, &e), &text);
}

static enum MHD_Result answer_completion(struct exchange *x)
{
    return send_completion(x, false);
}

static enum MHD_Result answer_chat(struct exchange *x)
{
    return send_completion(x, true);
}

static const struct route ROUTES[] = {
    {"GET", "/health", true, false, answer_health},
    {"GET", "/metrics", false, false, answer_metrics},
    {"GET", "/v1/models", false, false, answer_list},
    {"GET", "/v1/models/", false, true, answer_one},
    {"POST", "/v1/completions", false, false, answer_completion},
    {"POST", "/v1/chat/completions", false, false, answer_chat},
};

/* ---- before the body */

static tare_status find_route(struct exchange *x, const char *method, const char *url, struct refusal *no)
{
    for (size_t i = 0; i < sizeof ROUTES / sizeof *ROUTES; i++) {
        const struct route *r = &ROUTES[i];
        const size_t n = strlen(r->path);
        if (r->prefix ? strncmp(url, r->path, n) != 0 || !url[n] : strcmp(url, r->path) != 0) continue;
        x->route = r;
        x->rest = url + n;
        if (strcmp(method, r->method) != 0)
            REFUSE(no, 405, "method_not_allowed", NULL, TARE_E_INVALID, "%.20s %.200s: this path supports %s", method, url,
                   r->method);
        return TARE_OK;
    }
    REFUSE(no, 404, "not_found", NULL, TARE_E_NOT_FOUND,
           "unknown path %.200s; the paths are /v1/completions, /v1/chat/completions, /v1/models, /health and /metrics", url);
}

/* Compares keys in constant time. */
static bool is_key(const char *given, const char *key)
{
    const size_t n = strlen(key), m = given ? strlen(given) : 0;
    unsigned char differs = m != n;
    for (size_t i = 0; i < m; i++) differs |= (unsigned char)(given[i] ^ key[i % n]);
    return !differs;
}

static const char *get_header(const struct exchange *x, const char *name)
{
    return x->server->mhd->lookup_connection_value(x->connection, MHD_HEADER_KIND, name);
}

static tare_status check_key(const struct exchange *x, struct refusal *no)
{
    static const char bearer[] = "Bearer ";
    const char *given = get_header(x, "Authorization"), *key = x->server->options->key;
    if (!key || x->route->open) return TARE_OK;
    if (!given || strncasecmp(given, bearer, sizeof bearer - 1) != 0 || !is_key(given + sizeof bearer - 1, key))
        REFUSE(no, 401, "invalid_api_key", NULL, TARE_E_INVALID,
               "the key is missing or invalid; send it in the header Authorization: Bearer KEY");
    return TARE_OK;
}

/* Returns true if the n bytes of the header Host, without a port, name this machine. The name of
 * another site may have been made to point here; an address may not. */
static bool is_allowed_host(const struct serve_options *o, const char *host, size_t n)
{
    char name[256];
    struct in6_addr address;
    if (n >= sizeof name) return false;
    memcpy(name, host, n);
    name[n] = 0;
    const bool v6 = n > 2 && name[0] == '[' && name[n - 1] == ']';
    if (v6) name[n - 1] = 0;
    if (inet_pton(v6 ? AF_INET6 : AF_INET, name + v6, &address) == 1) return true;
    if (!strcasecmp(name, "localhost") || !strcasecmp(name, o->host)) return true;
    for (const char *at = o->allowed_hosts; at && *at;) {
        const size_t length = strcspn(at, ",");
        if (length == n && !strncasecmp(at, name, n)) return true;
        at += length + (at[length] == ',');
    }
    return false;
}

/* Refuses a request for another host: a page of a site whose name was made to point to this machine
 * (DNS rebinding) has this server's origin in a browser. A browser always sends Host, and a page
 * does not know the key. */
static tare_status check_host(const struct exchange *x, struct refusal *no)
{
    const struct serve_options *o = x->server->options;
    const char *host = get_header(x, "Host");
    if (o->key || !host) return TARE_OK;
    const char *close = *host == '[' ? strchr(host, ']') : NULL;
    const size_t n = close ? (size_t)(close + 1 - host) : strcspn(host, ":");
    if (is_allowed_host(o, host, n)) return TARE_OK;
    REFUSE(no, 421, "unknown_host", NULL, TARE_E_INVALID,
           "the host '%.200s' does not name this server; use its address or localhost, or start it with --allow-host or a key",
           host);
}

/* Accepts JSON only: a page in a browser can send a form to this machine without permission, but
 * not JSON. */
static tare_status check_type(const struct exchange *x, struct refusal *no)
{
    static const char json[] = "application/json";
    const char *type = get_header(x, "Content-Type");
    if (strcmp(x->route->method, "POST") != 0 || (type && !strncasecmp(type, json, sizeof json - 1))) return TARE_OK;
    REFUSE(no, 415, "unsupported_media_type", NULL, TARE_E_INVALID, "the body must be sent with Content-Type: application/json");
}

static tare_status too_large(const struct exchange *x, struct refusal *no)
{
    REFUSE(no, 413, "too_large", NULL, TARE_E_RANGE, "the body exceeds this server's limit of %lld bytes",
           (long long)x->server->options->max_body);
}

/* A client that still sends cannot read an answer, so a body of this size behind the limit is read. */
enum { DRAINED = 1 << 26 };

static tare_status check_length(struct exchange *x, struct refusal *no)
{
    const char *text = get_header(x, "Content-Length");
    struct err e;
    int64_t n;
    if (!text) return TARE_OK;
    const bool read = !str_to_int(text, &n, &e), fits = read && n <= x->server->options->max_body;
    if (fits) return TARE_OK;
    x->drains = read && n - x->server->options->max_body <= DRAINED && !get_header(x, "Expect");
    return too_large(x, no);
}

static tare_status check_request(struct exchange *x, const char *method, const char *url, struct refusal *no)
{
    TRY(find_route(x, method, url, no));
    TRY(check_host(x, no));
    TRY(check_key(x, no));
    TRY(check_type(x, no));
    return check_length(x, no);
}

/* ---- callbacks of libmicrohttpd */

static enum MHD_Result begin_request(struct server *s, struct MHD_Connection *connection, const char *url, const char *method,
                                     void **exchange)
{
    struct exchange *x;
    struct err e;
    if (mem_new((int64_t)sizeof *x, (void **)&x, &e)) return MHD_NO;
    x->server = s;
    x->connection = connection;
    *exchange = x;
    pthread_mutex_lock(&s->lock);
    s->n_exchanges++;
    pthread_mutex_unlock(&s->lock);
    /* a body that is far too long is not read; other refusals follow the body, where clients expect
     * them */
    if (check_request(x, method, url, &x->no) && x->no.http == 413 && !x->drains) return send_refusal(x, &x->no);
    return MHD_YES;
}

static void take_body(struct exchange *x, const char *data, size_t n)
{
    if (x->no.http) return;
    if (x->body.size + (int64_t)n > x->server->options->max_body) {
        too_large(x, &x->no);
        str_free(&x->body);
    } else if (str_add(&x->body, data, (int64_t)n, &x->no.e)) {
        request_refuse(&x->no, 500, "no_memory", NULL);
    }
}

enum MHD_Result http_request(void *server, struct MHD_Connection *connection, const char *url, const char *method,
                             const char *version, const char *data, size_t *n, void **exchange)
{
    (void)version;
    if (!*exchange) return begin_request(server, connection, url, method, exchange);
    struct exchange *x = *exchange;
    if (*n) {
        take_body(x, data, *n);
        *n = 0;
        return MHD_YES;
    }
    if (x->no.http) return send_refusal(x, &x->no);
    x->rest = url + strlen(x->route->path);
    return x->route->answer(x);
}

void http_completed(void *server, struct MHD_Connection *connection, void **exchange, enum MHD_RequestTerminationCode why)
{
    struct server *s = server;
    struct exchange *x = *exchange;
    (void)connection;
    (void)why;
    if (!x) return;
    pthread_mutex_lock(&s->lock);
    if (x->job) {
        x->job->waits = NULL;
        x->job->cancelled = !x->job->ended;
        job_release(x->job);
    }
    s->n_exchanges--;
    pthread_cond_signal(&s->quiet);
    pthread_mutex_unlock(&s->lock);
    str_free(&x->body);
    mem_free(x);
    *exchange = NULL;
}
