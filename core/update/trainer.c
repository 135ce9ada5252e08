#include "update/update.h"

#include <stdlib.h>

tare_status trainer_new(struct model *m, struct model *reference, const struct train_config *train, const struct loss_config *loss,
                        double temperature, uint64_t seed, int64_t total_steps, struct trainer **out, struct err *e)
{
    *out = NULL;
    struct trainer *t = calloc(1, sizeof *t);
    if (!t) FAIL(e, TARE_E_NOMEM, "no memory for the trainer");
    t->m = m;
    t->reference = reference;
    t->train = train;
    t->loss = loss;
    t->temperature = temperature > 0 ? temperature : 1;
    t->seed = seed;
    t->total_steps = total_steps;
    arena_init(&t->pack, "micro-batch plan");
    arena_init(&t->acts, "activations");
    arena_init(&t->head, "logits");
    arena_init(&t->work, "update");
    const int64_t bytes = m->n_params * (int64_t)sizeof(float);
    t->grads = m->k->alloc(&m->ctx, bytes);
    t->moment1 = m->k->alloc(&m->ctx, bytes);
    t->moment2 = m->k->alloc(&m->ctx, bytes);
    if (!t->grads || !t->moment1 || !t->moment2) {
        trainer_free(t);
        FAIL(e, TARE_E_NOMEM, "no memory for gradients and moments: 3 x %lld MiB", (long long)(bytes >> 20));
    }
    *out = t;
    return TARE_OK;
}

void trainer_free(struct trainer *t)
{
    if (!t) return;
    struct model *m = t->m;
    m->k->release(&m->ctx, t->grads);
    m->k->release(&m->ctx, t->moment1);
    m->k->release(&m->ctx, t->moment2);
    kv_cache_free(m, &t->cache);
    kv_cache_free(m, &t->ref_cache);
    arena_free(&t->pack);
    arena_free(&t->acts);
    arena_free(&t->head);
    arena_free(&t->work);
    free(t);
}
