/* The struct of a loaded tokenizer. Internal to core/data. */
#ifndef TARE_CORE_DATA_TOKENIZER_IMPL_H
#define TARE_CORE_DATA_TOKENIZER_IMPL_H

#include "base/json.h"
#include "data/added_tokens.h"
#include "data/normalize.h"
#include "data/pieces.h"
#include "data/pretokenize.h"
#include "data/tokenizer.h"

#include <pthread.h>

enum { MAX_SPLITS = 8 };

struct tokenizer {
    struct token_model model;
    struct added raw, normalized; /* added tokens matched before and after normalisation */
    struct normalizer normalizer;
    struct split splits[MAX_SPLITS];
    int64_t n_splits;
    struct decoding {
        bool drops_first_marks; /* Metaspace: the marks of the first token are not spaces */
        struct str first;       /* Strip: this character is removed from the front of the text */
        int64_t n_first;        /* at most this many times */
    } decoding;
    bool add_bos;
    int32_t role_id[TOKEN_ROLES];
    uint64_t hash;
    struct scratch_pool {
        pthread_mutex_t lock;
        struct piece_scratch *idle;
    } * pool; /* caches only: they never change a result */
};

/* Reads the parts of tokenizer.json into t (tokenizer_load.c). where: prefix of messages. */
tare_status tokenizer_read(struct tokenizer *t, const json_t *root, const char *where, struct err *e);
tare_status tokenizer_read_config(struct tokenizer *t, const json_t *config, const char *where, struct err *e);

/* Reads pre_tokenizer and decoder (tokenizer_steps.c), the steps before and after the model. The
 * decoder is read before the vocabulary because it defines how contents are spelt. */
tare_status tokenizer_read_steps(struct tokenizer *t, const json_t *root, const char *where, struct err *e);
/* Reads the model (tokenizer_model.c). */
tare_status tokenizer_read_model(struct tokenizer *t, const json_t *root, const char *where, struct err *e);

#endif
