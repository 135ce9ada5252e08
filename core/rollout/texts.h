/* Decodes completions from tokens to text. */
#ifndef TARE_CORE_ROLLOUT_TEXTS_H
#define TARE_CORE_ROLLOUT_TEXTS_H

#include "batch/batch.h"
#include "data/tokenizer.h"
#include "model/model.h"

/* Fills token_end, the end of each token in b's completions (rollout_texts). A character that spans
 * several tokens belongs to the last. */
tare_status rollout_token_ends(const struct tokenizer *t, struct batch *b, struct arena *a, struct err *e);
/* Decodes one completion (without the stop token) into the arena. */
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
/* Decodes b's completions. */
tare_status rollout_texts(const struct tokenizer *t, const struct model *m, struct batch *b, struct arena *a, struct err *e);

#endif
