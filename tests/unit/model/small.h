/* Small random models of each architecture, for tests that need no files. The weights are large
 * enough that attention is not uniform. */
#ifndef TARE_TESTS_SMALL_H
#define TARE_TESTS_SMALL_H

#include "engine.h"

#include "model/model.h"

#include <math.h>
#include <string.h>

static const char *const SMALL_ARCHS[] = {"qwen2", "llama", "qwen3"};

static inline struct model *small_model(const char *arch, bool tied, struct pool *pool)
{
    struct err e = {0};
    struct model *m;
    const struct kernels *k;
    const int32_t eos[2] = {2, 7};
    struct model_config c = small_shape(arch, "f32");
    c.hidden_size = 40, c.layers = 3, c.intermediate_size = 56, c.context = 128;
    c.tie_embeddings = tied;
    assert_ok(kernels_cpu(NULL, &k, &e), &e);
    assert_ok(model_new(&(struct model_source){.config = &c, .kernels = k, .pool = pool, .seed = 5}, 97, eos, 2, &m, &e), &e);
    for (int64_t i = 0; i < m->n_tensors; i++) {
        const struct tensor *t = &m->tensors[i];
        for (int64_t j = 0; j < t->rows * t->cols; j++) {
            float *w = m->weights + t->offset + j;
            *w = t->vector ? *w + 0.1f * (float)sin((double)(i + 3 * j)) : *w * (t->offset == m->embed ? 20.0f : 10.0f);
        }
    }
    model_refresh(m, NULL);
    return m;
}

#endif
