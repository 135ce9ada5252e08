#include "cluster/encode.h"

#include "base/fs.h"
#include "base/log.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 16 };

struct entry {
    int64_t size, index;
};

struct job {
    struct plugin_instance *encoder;
    const tare_text *texts;
    const struct entry *order; /* longest first, so that the last batches are short */
    int64_t n, d;
    float *out;
    pthread_mutex_t lock;
    int64_t failed; /* lowest failed batch, or -1 */
    struct err *err;
};

static int longest_first(const void *x, const void *y)
{
    const struct entry *a = x, *b = y;
    if (a->size != b->size) return a->size > b->size ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static tare_status encode_batch(struct job *job, int64_t first, int64_t count, struct err *e)
{
    tare_text texts[BATCH];
    OWNED(mem_free_at) float *out = NULL;
    TRY(mem_new(count * job->d * (int64_t)sizeof *out, (void **)&out, e));
    for (int64_t i = 0; i < count; i++) texts[i] = job->texts[job->order[first + i].index];
    TRY(plugin_encode(job->encoder, texts, count, out, e));
    for (int64_t i = 0; i < count; i++)
        memcpy(job->out + job->order[first + i].index * job->d, out + i * job->d, (size_t)job->d * sizeof *out);
    return TARE_OK;
}

static void encode_task(void *arg, int64_t task, int thread)
{
    struct job *job = arg;
    const int64_t first = task * BATCH, remaining = job->n - first;
    struct err e = {0};
    (void)thread;
    if (!encode_batch(job, first, remaining < BATCH ? remaining : BATCH, &e)) return;
    pthread_mutex_lock(&job->lock);
    if (job->failed < 0 || task < job->failed) {
        job->failed = task;
        *job->err = e;
    }
    pthread_mutex_unlock(&job->lock);
}

tare_status encode_texts(const struct encoding *what, float *out, struct err *e)
{
    const int64_t n = what->n;
    struct entry *order;
    struct err first = {0};
    TRY(mem_new(n * (int64_t)sizeof *order, (void **)&order, e));
    for (int64_t i = 0; i < n; i++) order[i] = (struct entry){what->texts[i].size, i};
    qsort(order, (size_t)n, sizeof *order, longest_first);
    struct job job = {.encoder = what->encoder,
                      .texts = what->texts,
                      .order = order,
                      .n = n,
                      .d = what->encoder->sizes.dim,
                      .out = out,
                      .failed = -1,
                      .err = &first};
    pthread_mutex_init(&job.lock, NULL);
    pool_run(what->encoder->plugin->desc.calls == TARE_CALLS_CONCURRENT ? what->pool : NULL, (n + BATCH - 1) / BATCH, encode_task,
             &job);
    pthread_mutex_destroy(&job.lock);
    mem_free(order);
    if (job.failed < 0) return TARE_OK;
    *e = first;
    return first.code;
}

uint64_t encode_hash_texts(const tare_text *texts, int64_t n)
{
    uint64_t h = 0;
    for (int64_t i = 0; i < n; i++) h = fs_hash(texts[i].data, texts[i].size, h + (uint64_t)texts[i].size + 1);
    return h;
}

/* ---------------------------------------------------------------- the cache */

struct cache_head {
    char magic[8];
    uint64_t key, content; /* hash of encoder and texts; hash of the embeddings */
    int64_t n, d;
};
static const char MAGIC[8] = "tareemb1";

static tare_status cache_key(const struct encoding *what, uint64_t *key, struct err *e)
{
    OWNED(str_free) struct str encoder = {0};
    TRY(plugin_identity(what->encoder, &encoder, e));
    if (what->encoder->plugin->encoder->save) TRY(plugin_save_raw(what->encoder, &encoder, e));
    *key = fs_hash(encoder.data, encoder.size, encode_hash_texts(what->texts, what->n));
    return TARE_OK;
}

static bool cache_read(const char *path, uint64_t key, int64_t n, int64_t d, float *out)
{
    struct fs_map m;
    struct err e;
    if (!fs_exists(path)) return false;
    if (fs_map(path, &m, &e)) {
        log_warn("%s; computing the embeddings again", e.message);
        return false;
    }
    struct cache_head h;
    const int64_t bytes = n * d * (int64_t)sizeof *out;
    bool good = m.size == (int64_t)sizeof h + bytes;
    if (good) {
        memcpy(&h, m.data, sizeof h);
        good = !memcmp(h.magic, MAGIC, sizeof h.magic) && h.key == key && h.n == n && h.d == d &&
               h.content == fs_hash(m.data + sizeof h, bytes, 0);
    }
    if (good) memcpy(out, m.data + sizeof h, (size_t)bytes);
    fs_unmap(&m);
    if (!good) log_warn("%s: is damaged; computing the embeddings again", path);
    return good;
}

static tare_status cache_write(const char *path, uint64_t key, int64_t n, int64_t d, const float *out, struct err *e)
{
    const int64_t bytes = n * d * (int64_t)sizeof *out;
    struct cache_head h = {.key = key, .content = fs_hash(out, bytes, 0), .n = n, .d = d};
    memcpy(h.magic, MAGIC, sizeof h.magic);
    OWNED(str_free) struct str file = {0};
    TRY(str_reserve(&file, (int64_t)sizeof h + bytes + 1, e));
    TRY(str_add(&file, (const char *)&h, sizeof h, e));
    TRY(str_add(&file, (const char *)out, bytes, e));
    return fs_write_atomic(path, file.data, file.size, e);
}

tare_status encode_cached(const struct encoding *what, const char *folder, float *out, bool *hit, struct err *e)
{
    if (hit) *hit = false;
    if (!folder) return encode_texts(what, out, e);
    const int64_t n = what->n, d = what->encoder->sizes.dim;
    char path[FS_PATH], name[64];
    uint64_t key;
    TRY(cache_key(what, &key, e));
    snprintf(name, sizeof name, "embeddings-%016llx.bin", (unsigned long long)key);
    TRY(fs_join(path, folder, name, e));
    if (cache_read(path, key, n, d, out)) {
        if (hit) *hit = true;
        return TARE_OK;
    }
    TRY(encode_texts(what, out, e));
    TRY(fs_mkdirs(folder, e));
    return cache_write(path, key, n, d, out, e);
}
