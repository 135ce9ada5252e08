/* Rows to prompts and tokens to text, for every verb that samples or trains. */
#ifndef TARE_CORE_ENGINE_TEXT_H
#define TARE_CORE_ENGINE_TEXT_H

#include "batch/batch.h"
#include "config/config.h"
#include "data/dataset.h"
#include "data/prompt.h"
#include "model/model.h"

struct chosen_rows {
    const struct dataset *data;
    const int64_t *rows, *occurrence; /* [n]; occurrence NULL: 0 */
    int64_t n;
};
/* Fills rows, uids, occurrences and prompts of b. ids: kept by the caller, grown. */
tare_status stage_prompts(const struct prompts *p, const struct chosen_rows *chosen, struct token_ids *ids, struct batch *b,
                          struct arena *a, struct err *e);
/* Fills token_end: where each token ends in b's completions (stage_texts). A character that several tokens write belongs to the last. */
tare_status stage_token_ends(const struct tokenizer *t, struct batch *b, struct arena *a, struct err *e);
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
tare_status completion_text(const struct decoding *d, struct completion_ids x, tare_text *out, struct err *e);
/* The texts of b's completions. */
tare_status stage_texts(const struct tokenizer *t, const struct model *m, struct batch *b, struct arena *a, struct err *e);

#endif
