/* ReLIFT: questions that no rollout solved, and the supervised updates on their rows. */
#ifndef TARE_CORE_LOOP_RELIFT_H
#define TARE_CORE_LOOP_RELIFT_H

#include "checkpoint/state.h"
#include "data/tokenizer.h"

struct run;

/* Rows by their place in data.train. */
struct relift {
    int64_t *row, n, capacity;               /* that wait for a demonstration, the newest first; saved */
    int64_t *fresh, n_fresh, fresh_capacity; /* of this step, in the order of its groups */
    struct token_ids prompt_ids;
};

/* Questions that no rollout solved, and the supervised updates on their rows. */
tare_status relift_check(struct run *r, struct err *e); /* rows, once data, prompts and model are open */
void relift_free(struct run *r);
void relift_begin(struct run *r);                       /* a step begins, or begins again */
tare_status stage_hard(struct run *r, struct err *e);   /* notes the batch's unsolved questions */
tare_status stage_relift(struct run *r, struct err *e); /* after the policy's update */
tare_status relift_write(const struct run *r, struct state_writer *w, struct err *e);
tare_status relift_read(struct run *r, const struct state_reader *s, const char *folder, struct err *e);

#endif
