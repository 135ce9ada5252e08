/* What a loaded tokenizer holds. Internal to the data folder. */
#ifndef TARE_CORE_TOKENIZER_IMPL_H
#define TARE_CORE_TOKENIZER_IMPL_H

#include "base/json.h"
#include "data/added_tokens.h"
#include "data/bpe.h"
#include "data/pretokenize.h"
#include "data/tokenizer.h"
#include "data/vocab.h"

#include <pthread.h>

enum { MAX_SPLITS = 8 };

struct tokenizer {
    struct vocab vocab;
    struct merges merges;
    struct added raw, normalized; /* added tokens: cut out before and after normalisation */
    struct split splits[MAX_SPLITS];
    int64_t n_splits;
    bool nfc, ignore_merges, add_bos;
    int32_t role_id[TOKEN_ROLES];
    uint64_t hash;
    struct scratch_pool {
        pthread_mutex_t lock;
        struct bpe_scratch *idle;
    } * pool; /* caches only: never changes a result */
};

/* Reads the parts of tokenizer.json into t (tokenizer_load.c). where: for messages. */
tare_status tokenizer_read(struct tokenizer *t, const json_t *root, const char *where, struct err *e);
tare_status tokenizer_read_config(struct tokenizer *t, const json_t *config, const char *where, struct err *e);

#endif
