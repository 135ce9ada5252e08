/* Compares the model with the reference values of every folder in TARE_GOLDENS: logprobs,
 * entropies, losses, gradients, AdamW, greedy texts. Prints the largest difference for each model,
 * and "N passed, N failed". */
#include "goldens.h"
#include "load.h"

#include "model/grads.h"

static int n_passed, n_failed;

static void check(const struct goldens *g, const char *what, double worst, double allowed)
{
    const bool ok = worst <= allowed; /* a NaN fails */
    const char *name = strrchr(g->folder, '/');
    printf("%-24s %-28s %.2e (at most %.0e)%s\n", name ? name + 1 : g->folder, what, worst, allowed, ok ? "" : "  FAILED");
    ok ? n_passed++ : n_failed++;
}

static double worse(double a, double b)
{
    return b > a || isnan(b) ? b : a;
}

/* ---- logprobs and entropies on the inference path, one sequence at a time */
static void forward_all(struct model *m, const struct goldens *g, int64_t b, struct arena *a, float **logits)
{
    struct err e = {0};
    struct kv_cache cache;
    const int64_t n = g->len[b] - 1;
    int32_t pos[4096], blocks[256];
    int64_t rows[4096];
    float *hidden;
    for (int64_t i = 0; i < n; i++) pos[i] = (int32_t)i, rows[i] = i;
    for (int32_t i = 0; i < 256; i++) blocks[i] = i;
    const struct attn_seq seq = {0, n, 0, blocks, 0};
    const struct forward_batch batch = {n, g->rows[b], pos, rows, rows, n, true, &seq, 1, true, rows, n};
    assert_ok(kv_cache_new(m, m->shape.layers, 256, &cache, &e), &e);
    assert_ok(model_forward(m, &cache, &batch, a, &hidden, &e), &e);
    assert_ok(arena_new(a, logits, n * m->shape.vocab, &e), &e);
    model_logits(m, hidden, n, *logits);
    kv_cache_free(m, &cache);
}

static void check_logprobs(struct model *m, const struct goldens *g)
{
    struct arena a;
    struct err e = {0};
    double worst[4] = {0};
    const struct st_tensor *lp = golden(g, "logprobs"), *lp6 = golden(g, "logprobs_t0.6"), *ent = golden(g, "entropies"),
                           *z = golden_is_there(g, "logits") ? golden(g, "logits") : NULL;
    arena_init(&a, "parity");
    for (int64_t b = 0; b < g->B; b++) {
        float *logits, *logprob, *entropy, *lse;
        const int64_t n = g->len[b] - 1, V = m->shape.vocab;
        forward_all(m, g, b, &a, &logits);
        assert_ok(arena_new(&a, &logprob, n, &e), &e);
        assert_ok(arena_new(&a, &entropy, n, &e), &e);
        assert_ok(arena_new(&a, &lse, 2 * n, &e), &e);
        for (int64_t i = 0; z && b < z->shape[0] && i < n * V; i++)
            worst[3] = worse(worst[3], fabs((double)logits[i] - (double)st_f32(z, b * g->T * V + i)));
        KERNEL(m->k, &m->ctx, head_stats, .logprob = logprob, .entropy = entropy, .lse = lse, .logits = logits,
               .target = g->rows[b] + 1, .temperature = 0.6f, .r = n, .v = V);
        for (int64_t i = 0; i < n; i++)
            worst[1] = worse(worst[1], fabs((double)logprob[i] - (double)st_f32(lp6, b * g->T + i + 1)));
        KERNEL(m->k, &m->ctx, head_stats, .logprob = logprob, .entropy = entropy, .lse = lse, .logits = logits,
               .target = g->rows[b] + 1, .temperature = 1, .r = n, .v = V);
        for (int64_t i = 0; i < n; i++) {
            worst[0] = worse(worst[0], fabs((double)logprob[i] - (double)st_f32(lp, b * g->T + i + 1)));
            worst[2] = worse(worst[2], fabs((double)entropy[i] - (double)st_f32(ent, b * g->T + i + 1)));
        }
        arena_reset(&a);
    }
    arena_free(&a);
    if (z) check(g, "logits", worst[3], 1e-4);
    check(g, "logprobs", worst[0], 1e-4);
    check(g, "logprobs at 0.6", worst[1], 1e-4);
    check(g, "entropies", worst[2], 1e-4);
}

/* ---- losses of the README */
struct head { /* of one packed batch */
    float *logits, *ref_logits, *logprob, *entropy, *lse, *ref_lse, *ref_logprob, *kl;
    struct head_grad_row *coef;
};

static void head_new(struct arena *a, int64_t n, int64_t v, struct head *h)
{
    struct err e = {0};
    assert_ok(arena_new(a, &h->logits, n * v, &e), &e);
    assert_ok(arena_new(a, &h->ref_logits, n * v, &e), &e);
    assert_ok(arena_new(a, &h->logprob, n, &e), &e);
    assert_ok(arena_new(a, &h->ref_logprob, n, &e), &e);
    assert_ok(arena_new(a, &h->entropy, n, &e), &e);
    assert_ok(arena_new(a, &h->lse, 2 * n, &e), &e);
    assert_ok(arena_new(a, &h->ref_lse, 2 * n, &e), &e);
    assert_ok(arena_new(a, &h->kl, n, &e), &e);
    assert_ok(arena_new(a, &h->coef, n, &e), &e);
}

/* Returns the loss and computes the coefficients of its gradient. The targets of a packed batch are
 * the completion tokens, sequence by sequence. */
static double loss_of(const struct goldens *g, char which, struct head *h)
{
    const struct st_tensor *old = golden(g, "old_logprobs"), *ref = golden(g, "ref_logprobs"), *advantage = golden(g, "advantages");
    double loss = 0;
    int64_t i = 0;
    for (int64_t b = 0; b < g->B; b++)
        for (int64_t t = g->prompt_len[b]; t < g->len[b]; t++, i++) {
            const double w = which == 'B' ? 1.0 / (double)g->n_tokens : 1.0 / ((double)g->B * (double)g->completion_len[b]);
            const double A = (double)st_f32(advantage, b), logp = h->logprob[i], r = exp(logp - (double)st_f32(old, b * g->T + t));
            const double clipped = fmin(fmax(r, 0.8), which == 'B' ? 1.28 : 1.2) * A;
            const double d = (double)st_f32(ref, b * g->T + t) - logp;
            h->coef[i] = (struct head_grad_row){.logprob = (float)(r * A <= clipped ? -w * r * A : 0)};
            loss -= w * fmin(r * A, clipped);
            if (which == 'B') {
                loss += w * 0.04 * (exp(d) - d - 1);
                h->coef[i].logprob += (float)(w * 0.04 * (1 - exp(d)));
            } else {
                loss -= w * 0.01 * (double)h->entropy[i];
                h->coef[i].entropy = (float)(-w * 0.01);
            }
            if (which == 'C') {
                loss += w * 0.05 * (double)h->kl[i];
                h->coef[i].kl = (float)(w * 0.05);
            }
        }
    return loss;
}

struct run { /* a model and a packed batch */
    struct model *m, *ref;
    const struct goldens *g;
    struct arena plan, acts;
    struct packed_batch p;
    struct kv_cache cache;
    enum recompute recompute;
};

static void run_new(struct run *r, const struct goldens *g, struct model *m, struct model *ref, bool share,
                    enum recompute recompute)
{
    struct err e = {0};
    *r = (struct run){.m = m, .ref = ref, .g = g, .recompute = recompute};
    arena_init(&r->plan, "plan");
    arena_init(&r->acts, "acts");
    assert_ok(pack_groups(g->groups, g->n_groups, share, &r->plan, &r->p, &e), &e);
    assert_int_equal(r->p.n_targets, g->n_tokens);
    assert_ok(kv_cache_new(m, 1, r->p.n_blocks, &r->cache, &e), &e);
}

static void run_free(struct run *r)
{
    kv_cache_free(r->m, &r->cache);
    arena_free(&r->plan);
    arena_free(&r->acts);
}

/* Returns the loss; its gradient is added to grads (NULL: forward only). */
static double run_loss(struct run *r, char which, float *grads)
{
    struct err e = {0};
    struct head h;
    struct train_pass *pass, *ref_pass;
    float *hidden, *ref_hidden, *dhidden;
    struct model *m = r->m;
    const struct packed_batch *p = &r->p;
    const int64_t V = m->shape.vocab, n = p->n_targets;
    const bool kl = which == 'C';
    arena_reset(&r->acts);
    head_new(&r->acts, n, V, &h);
    if (kl) { /* first: the cache is shared */
        assert_ok(model_train_forward(r->ref, &(struct train_input){&r->cache, &p->forward, p->segs, p->n_segs, RECOMPUTE_LAYER},
                                      &r->acts, &ref_pass, &ref_hidden, &e),
                  &e);
        model_logits(r->ref, ref_hidden, n, h.ref_logits);
        KERNEL(m->k, &m->ctx, head_stats, .logprob = h.ref_logprob, .lse = h.ref_lse, .logits = h.ref_logits, .target = p->target,
               .temperature = 1, .r = n, .v = V);
    }
    assert_ok(model_train_forward(m, &(struct train_input){&r->cache, &p->forward, p->segs, p->n_segs, r->recompute}, &r->acts,
                                  &pass, &hidden, &e),
              &e);
    model_logits(m, hidden, n, h.logits);
    KERNEL(m->k, &m->ctx, head_stats, .logprob = h.logprob, .entropy = h.entropy, .lse = h.lse, .logits = h.logits,
           .target = p->target, .temperature = 1, .r = n, .v = V);
    if (kl)
        KERNEL(m->k, &m->ctx, head_kl, .kl = h.kl, .logits = h.logits, .lse = h.lse, .ref_logits = h.ref_logits,
               .ref_lse = h.ref_lse, .temperature = 1, .r = n, .v = V);
    const double loss = loss_of(r->g, which, &h);
    if (!grads) return loss;
    KERNEL(m->k, &m->ctx, head_grad, .logits = h.logits, .target = p->target, .lse = h.lse, .entropy = h.entropy,
           .ref_logits = kl ? h.ref_logits : NULL, .ref_lse = kl ? h.ref_lse : NULL, .kl = kl ? h.kl : NULL, .coef = h.coef,
           .temperature = 1, .r = n, .v = V);
    assert_ok(arena_new(&r->acts, &dhidden, n * m->shape.hidden, &e), &e);
    struct grads sums;
    assert_ok(grads_new(m, &sums, &e), &e);
    model_backward_begin(m, &sums);
    model_logits_grad(m, &(struct logits_grad){h.logits, hidden, n, dhidden}, &sums);
    assert_ok(model_backward(m, pass, dhidden, &sums, &e), &e);
    for (int64_t i = 0; i < m->n_params; i++) grads[i] += sums.sum[i];
    grads_free(&sums);
    return loss;
}

static double norm_of(const float *x, int64_t n)
{
    double s = 0;
    for (int64_t i = 0; i < n; i++) s += (double)x[i] * (double)x[i];
    return sqrt(s);
}

static void check_gradients(const struct goldens *g, const struct model *m, const float *grads)
{
    double worst = 0;
    for (int64_t i = 0; i < m->n_tensors; i++) {
        const struct tensor *t = &m->tensors[i];
        char name[128];
        snprintf(name, sizeof name, "grad_A.%s", t->name);
        if (!golden_is_there(g, name)) return;
        const struct st_tensor *want = golden(g, name);
        double d = 0, s = 0;
        assert_int_equal(safetensors_count(want), t->rows * t->cols);
        for (int64_t j = 0; j < t->rows * t->cols; j++) {
            const double x = (double)st_f32(want, j), y = (double)grads[t->offset + j];
            d += (x - y) * (x - y), s += x * x;
        }
        worst = worse(worst, sqrt(d) / sqrt(s));
    }
    check(g, "gradients of A, relative L2", worst, 1e-4);
}

static void check_norms(const struct goldens *g, const struct model *m, const float *grads, const char *which)
{
    const json_t *want = json_object_get(json_object_get(g->info, "grad_l2"), which);
    char what[64];
    double worst = 0;
    for (int64_t i = 0; i < m->n_tensors; i++) {
        const struct tensor *t = &m->tensors[i];
        const double x = json_number_value(json_object_get(want, t->name)), y = norm_of(grads + t->offset, t->rows * t->cols);
        assert_non_null(json_object_get(want, t->name));
        worst = worse(worst, fabs(x - y) / x);
    }
    snprintf(what, sizeof what, "gradient norms of %s", which);
    check(g, what, worst, 1e-4);
}

static double relative(const float *x, const float *y, int64_t n)
{
    double d = 0, s = 0;
    for (int64_t i = 0; i < n; i++)
        d += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]), s += (double)x[i] * (double)x[i];
    return sqrt(d / s);
}

static double worst_tensor(const struct model *m, const float *x, const float *y)
{
    double worst = 0;
    for (int64_t i = 0; i < m->n_tensors; i++)
        worst = worse(worst, relative(x + m->tensors[i].offset, y + m->tensors[i].offset, m->tensors[i].rows * m->tensors[i].cols));
    return worst;
}

static void check_losses(const struct goldens *g, struct model *m, struct model *ref)
{
    const char *names[] = {"A", "B", "C"};
    static const char *const AGAIN[] = {"norms", "mlp", "layers"};
    struct run shared, plain, again[3];
    const size_t bytes = (size_t)m->n_params * 4;
    float *x = malloc(bytes), *y = malloc(bytes);
    run_new(&shared, g, m, ref, true, RECOMPUTE_NONE);
    run_new(&plain, g, m, ref, false, RECOMPUTE_NONE);
    for (int j = 0; j < 3; j++) run_new(&again[j], g, m, ref, true, (enum recompute)(RECOMPUTE_NORMS + j));
    for (int i = 0; i < (ref ? 3 : 2);
         /* Loss C has the KL to the reference policy, which the tree keeps for one model only. */
         i++) {
        char what[64];
        memset(x, 0, bytes);
        memset(y, 0, bytes);
        const double loss = run_loss(&shared, *names[i], x), other = run_loss(&plain, *names[i], y);
        snprintf(what, sizeof what, "loss %s", names[i]);
        check(g, what, fabs(loss - goldens_number(g, "loss", names[i])), 1e-6);
        snprintf(what, sizeof what, "loss %s, prompt shared or not", names[i]);
        check(g, what, fabs(loss - other), 0);
        snprintf(what, sizeof what, "grads %s, shared or not", names[i]);
        check(g, what, worst_tensor(m, x, y), 1e-5);
        if (!i) check_gradients(g, m, x);
        if (!i) check_gradients(g, m, y);
        check_norms(g, m, x, names[i]);
        for (int j = 0; j < 3; j++) {
            memset(y, 0, bytes);
            run_loss(&again[j], *names[i], y);
            snprintf(what, sizeof what, "grads %s, %s recomputed or kept", names[i], AGAIN[j]);
            check(g, what, memcmp(x, y, bytes) ? 1 : 0, 0);
        }
    }
    run_free(&shared);
    run_free(&plain);
    for (int j = 0; j < 3; j++) run_free(&again[j]);
    free(x);
    free(y);
}

/* ---- three steps of AdamW on loss A; changes m */
static void check_adamw(const struct goldens *g, struct model *m)
{
    struct run r;
    const size_t bytes = (size_t)m->n_params * 4;
    float *grads = malloc(bytes), *m1 = calloc(1, bytes), *m2 = calloc(1, bytes);
    double worst = 0, sum = 0, worst_loss = 0;
    int64_t n = 0, far = 0;
    const json_t *losses = json_object_get(json_object_get(g->info, "adamw"), "loss_before_each_step");
    run_new(&r, g, m, NULL, true, RECOMPUTE_NONE);
    for (int step = 1; step <= 3; step++) {
        memset(grads, 0, bytes);
        const double loss = run_loss(&r, 'A', grads), norm = norm_of(grads, m->n_params);
        worst_loss = worse(worst_loss, fabs(loss - json_number_value(json_array_get(losses, (size_t)step - 1))));
        KERNEL(m->k, &m->ctx, adamw, .p = m->weights, .g = grads, .m = m1, .v = m2, .n = m->n_params,
               .grad_scale = (float)fmin(1, 1 / (norm + 1e-6)), .lr = 1e-3f, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f,
               .decay = 0.01f, .correct1 = 1 - pow(0.9, step), .correct2 = 1 - pow(0.999, step));
        model_refresh(m, NULL);
    }
    worst_loss = worse(worst_loss, fabs(run_loss(&r, 'A', NULL) - goldens_number(g, "adamw", "loss_after_3")));
    for (int64_t i = 0; i < m->n_tensors; i++) {
        const struct tensor *t = &m->tensors[i];
        char name[128];
        snprintf(name, sizeof name, "param3.%s", t->name);
        if (!golden_is_there(g, name)) break;
        const struct st_tensor *want = golden(g, name);
        for (int64_t j = 0; j < t->rows * t->cols; j++) {
            const double d = fabs((double)st_f32(want, j) - (double)m->weights[t->offset + j]);
            worst = worse(worst, d);
            sum += d, n++;
            far += !(d <= 1e-5);
        }
    }
    check(g, "losses around 3 AdamW steps", worst_loss, 1e-5);
    if (n) {
        check(g, "AdamW, mean difference", sum / (double)n, 1e-6);
        check(g, "AdamW, share beyond 1e-5", (double)far / (double)n, 1e-3);
        check(g, "AdamW, largest", worst, 1e-3);
    }
    run_free(&r);
    free(grads);
    free(m1);
    free(m2);
}

/* ---- greedy texts: the whole prompt, then token by token on the cache */
static bool greedy_matches(struct model *m, const json_t *prompt, const json_t *tokens)
{
    struct err e = {0};
    struct kv_cache cache;
    struct arena a;
    int32_t ids[4096], pos[4096], blocks[256];
    int64_t rows[4096], slots[4096];
    const int64_t P = (int64_t)json_array_size(prompt), n = (int64_t)json_array_size(tokens);
    bool same = true;
    arena_init(&a, "greedy");
    assert_true(P + n <= 4096);
    assert_ok(kv_cache_new(m, m->shape.layers, 256, &cache, &e), &e);
    for (int32_t i = 0; i < 256; i++) blocks[i] = 255 - i;
    for (int64_t i = 0; i < P; i++) ids[i] = (int32_t)json_integer_value(json_array_get(prompt, (size_t)i));
    for (int64_t i = 0, at = 0, t = P; i < n && same; i++) {
        float *hidden, *logits;
        int64_t best = 0, last = t - 1;
        for (int64_t j = 0; j < t; j++) {
            pos[j] = (int32_t)(at + j), rows[j] = j;
            slots[j] = (int64_t)blocks[(at + j) / KV_BLOCK] * KV_BLOCK + (at + j) % KV_BLOCK;
        }
        const struct attn_seq seq = {0, t, at, blocks, 0};
        const struct forward_batch b = {t, ids, pos, rows, slots, t, false, &seq, 1, false, &last, 1};
        assert_ok(model_forward(m, &cache, &b, &a, &hidden, &e), &e);
        assert_ok(arena_new(&a, &logits, m->shape.vocab, &e), &e);
        model_logits(m, hidden, 1, logits);
        for (int64_t v = 1; v < m->shape.vocab; v++)
            if (logits[v] > logits[best]) best = v;
        same = best == json_integer_value(json_array_get(tokens, (size_t)i));
        at += t, t = 1, ids[0] = (int32_t)best;
        arena_reset(&a);
    }
    kv_cache_free(m, &cache);
    arena_free(&a);
    return same;
}

static void check_greedy(const struct goldens *g, struct model *m)
{
    struct err e = {0};
    char path[FS_PATH];
    json_t *j;
    int bad = 0;
    assert_ok(fs_join(path, g->folder, "greedy.json", &e), &e);
    assert_ok(json_read_file(path, &j, &e), &e);
    assert_true(json_array_size(j) > 0);
    for (size_t i = 0; i < json_array_size(j); i++) {
        const json_t *c = json_array_get(j, i);
        bad += !greedy_matches(m, json_object_get(c, "prompt"), json_object_get(c, "tokens"));
    }
    check(g, "greedy texts that differ", bad, 0);
    json_decref(j);
}

static void parity(void **state)
{
    (void)state;
    static char folders[64][FS_PATH];
    static struct goldens g;
    const struct kernels *k;
    struct pool *pool;
    struct err e = {0};
    const int64_t n = golden_folders(folders);
    assert_ok(kernels_cpu(NULL, &k, &e), &e);
    assert_ok(pool_new(2, &pool, &e), &e);
    printf("kernels: %s\n", k->name);
    for (int64_t i = 0; i < n; i++) {
        struct model *m, *ref = NULL;
        char path[FS_PATH];
        goldens_open(&g, folders[i]);
        assert_ok(model_load(folders[i], NULL, k, pool, &m, &e), &e);
        assert_ok(fs_join(path, folders[i], "ref", &e), &e);
        if (shared_is_whole(path) || fs_is_dir(path)) assert_ok(model_load(path, NULL, k, pool, &ref, &e), &e);
        check_logprobs(m, &g);
        check_losses(&g, m, ref);
        check_greedy(&g, m);
        check_adamw(&g, m);
        model_free(m);
        if (ref) model_free(ref);
        goldens_close(&g);
    }
    pool_free(pool);
    printf("%d passed, %d failed\n", n_passed, n_failed);
    assert_int_equal(n_failed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(parity)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
