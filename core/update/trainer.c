#include "update/trainer.h"
#include "update/supervised.h"

#include <stdlib.h>

tare_status trainer_new(struct model *m, const struct trainer_options *o, struct trainer **out, struct err *e)
{
    *out = NULL;
    struct trainer *t = calloc(1, sizeof *t);
    if (!t) FAIL(e, TARE_E_NOMEM, "no memory for the trainer");
    t->m = m;
    t->reference = o->reference;
    t->train = o->train;
    t->loss = o->loss;
    t->temperature = o->temperature > 0 ? o->temperature : 1;
    t->seed = o->seed;
    t->total_steps = o->total_steps;
    arena_init(&t->pack, "micro-batch packing");
    model_arena_init(m, &t->acts, "activations");
    model_arena_init(m, &t->head, "logits");
    arena_init(&t->work, "update");
    t->gradient_shards = 1;
    t->moment_bytes = 2 * (m->shard == SHARD_NONE ? m->n_params : m->n_own) * (int64_t)sizeof(float);
    const tare_status status = grads_new(m, &t->grads, e);
    if (!status) t->moment1 = m->k->backend->alloc(&m->ctx, t->moment_bytes / 2);
    if (!status) t->moment2 = m->k->backend->alloc(&m->ctx, t->moment_bytes / 2);
    if (status || !t->moment1 || !t->moment2) {
        const int64_t bytes = t->moment_bytes;
        trainer_free(t);
        return status ? status : kernels_no_memory(m->k, &m->ctx, "the moments", bytes, e);
    }
    *out = t;
    return TARE_OK;
}

void trainer_free(struct trainer *t)
{
    if (!t) return;
    struct model *m = t->m;
    if (t->grads.m) grads_free(&t->grads);
    if (t->moment1) m->k->backend->release(&m->ctx, t->moment1);
    if (t->moment2) m->k->backend->release(&m->ctx, t->moment2);
    supervised_free_second(t);
    kv_cache_free(m, &t->cache);
    kv_cache_free(m, &t->ref_cache);
    kv_cache_free(m, &t->own_cache);
    arena_free(&t->pack);
    arena_free(&t->acts);
    arena_free(&t->head);
    arena_free(&t->work);
    free(t);
}
