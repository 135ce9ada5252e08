/* What the checkpoints of `tare train` and `tare sft` share. A checkpoint's folder (checkpoint/checkpoint.h) holds
 *
 *   the model, as a folder that transformers loads
 *   training.state     what the verb knows beside model and optimizer: how far it came, and what it was started with
 *   optimizer-*.state  moments, and weights where the folder's are not in single precision (optimizer.h)
 */
#ifndef TARE_CORE_CHECKPOINT_TRAINING_H
#define TARE_CORE_CHECKPOINT_TRAINING_H

#include "checkpoint/optimizer.h"
#include "checkpoint/state.h"
#include "config/config.h"

/* A verb's part of training.state. saved_state's ctx comes back. */
struct saved_state {
    void *ctx;
    tare_status (*write)(const void *ctx, struct state_writer *w, struct err *e);
    /* *ranks: how many wrote pieces of the optimizer; folder: for messages */
    tare_status (*read)(void *ctx, const struct state_reader *s, const char *folder, int64_t *ranks, struct err *e);
};

/* Everything into a folder that checkpoint_begin gave. tokenizer: folder of its files, NULL: none. optimizer: whether it can be resumed.
 * Each rank writes its pieces, rank 0 the rest. */
tare_status training_saved_write(const char *folder, const struct training *t, const char *tokenizer, bool optimizer,
                                 const struct saved_state *state, struct err *e);
/* Back into model and trainer. */
tare_status training_saved_read(const char *folder, const struct training *t, const struct saved_state *state, struct err *e);

/* What must be the same for a resumed run to be the same run: else TARE_E_CONFIG, naming the key. */
tare_status training_saved_expect(const struct state_reader *s, const char *name, int64_t want, const char *key, struct err *e);
/* The same of data.train = file, by the hash of its rows. folder: the checkpoint, for the message. */
tare_status training_saved_expect_rows(const struct state_reader *s, uint64_t hash, const char *file, const char *folder,
                                       struct err *e);
/* How many ranks wrote the optimizer, from the section "ranks"; TARE_E_CONFIG when none did. */
tare_status training_saved_ranks(const struct state_reader *s, const char *folder, int64_t *ranks, struct err *e);
/* model.save_dtype: the precision in which the model is written. */
enum dtype training_saved_dtype(const struct config *c, const struct model *m);

#endif
