/* Completions from tokens to text. */
#ifndef TARE_CORE_ROLLOUT_TEXTS_H
#define TARE_CORE_ROLLOUT_TEXTS_H

#include "batch/batch.h"
#include "data/tokenizer.h"
#include "model/model.h"

/* Fills token_end: where each token ends in b's completions (rollout_texts). A character that several tokens write belongs to the last. */
tare_status rollout_token_ends(const struct tokenizer *t, struct batch *b, struct arena *a, struct err *e);
/* The text of one completion (without the stop token), in the arena. */
struct decoding {
    const struct tokenizer *tokenizer;
    const struct model *model;
    struct arena *arena;
};
struct completion_ids {
    const int32_t *ids;
    int64_t n;
    uint8_t finish;
};
tare_status rollout_completion_text(const struct decoding *d, struct completion_ids x, tare_text *out, struct err *e);
/* The texts of b's completions. */
tare_status rollout_texts(const struct tokenizer *t, const struct model *m, struct batch *b, struct arena *a, struct err *e);

#endif
