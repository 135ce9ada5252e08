/* Loads a model on one rank. */
#ifndef TARE_TESTS_LOAD_H
#define TARE_TESTS_LOAD_H

#include "model/model.h"

static inline tare_status model_load(const char *folder, const struct model_config *c, const struct kernels *k, struct pool *pool,
                                     struct model **out, struct err *e)
{
    return model_open(&(struct model_source){.folder = folder, .config = c, .kernels = k, .pool = pool}, out, e);
}

#endif
