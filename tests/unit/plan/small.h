/* A model small enough to be computed by hand. */
#ifndef TEST_PLAN_SMALL_H
#define TEST_PLAN_SMALL_H

#include "model/model.h"

static const struct model_shape SMALL = {.arch = ARCH_QWEN2,
                                         .vocab = 32,
                                         .hidden = 8,
                                         .layers = 2,
                                         .heads = 2,
                                         .kv_heads = 1,
                                         .head_dim = 4,
                                         .intermediate = 16,
                                         .max_position = 64,
                                         .tied = true,
                                         .qkv_bias = true};

#endif
