/* Pieces of a step that join several folders, for every verb that samples or trains: rows to prompts, tokens to text, interruption. */
#ifndef TARE_CORE_STAGES_H
#define TARE_CORE_STAGES_H

#include "config/config.h"
#include "data/batch.h"
#include "data/dataset.h"
#include "data/prompt.h"
#include "model/model.h"

/* Fills rows, uids, occurrences (NULL: 0) and prompts of b from rows [n] of d. ids: kept by the caller, grown. */
tare_status stage_prompts(const struct prompts *p, const struct dataset *d, const int64_t *rows, const int64_t *occurrence,
                          int64_t n, struct token_ids *ids, struct batch *b, struct arena *a, struct err *e);
/* Decodes b's completions (without the stop token) into the arena. */
tare_status stage_texts(const struct tokenizer *t, const struct model *m, struct batch *b, struct arena *a, struct err *e);

/* warm_start.c: makes model.path by `tare sft` of model.warm_start when the folder is absent. */
tare_status warm_start(const struct config *c, struct err *e);
/* sft.c: `tare sft`. The checkpoints lie in SFT.OUT.training until the model is written. */
enum sft_start {
    SFT_NEW,    /* refused where there are checkpoints */
    SFT_RESUME, /* from the last complete one */
    SFT_GO_ON   /* from it if there is one */
};
tare_status sft_run(const struct config *c, enum sft_start start, struct err *e);

/* signals.c: SIGINT and SIGTERM set the flag; a second one ends the process at once. */
const volatile int *signals_flag(void);
void signals_catch(void);

#endif
