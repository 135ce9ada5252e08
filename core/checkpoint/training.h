/* Checkpoint code shared by `tare train` and `tare sft`. A checkpoint folder
 * (checkpoint/checkpoint.h) holds
 *
 *   the model, as a folder that transformers loads
 *   training.state     progress of the command, and settings that a resumed training cannot change
 *   optimizer-*.state  moments, and weights if the folder's are not in single precision
 * (optimizer.h) */
#ifndef TARE_CORE_CHECKPOINT_TRAINING_H
#define TARE_CORE_CHECKPOINT_TRAINING_H

#include "checkpoint/optimizer.h"
#include "checkpoint/state.h"
#include "config/config.h"

/* The command's part of training.state. ctx is passed to both functions. */
struct saved_state {
    void *ctx;
    tare_status (*write)(const void *ctx, struct state_writer *w, struct err *e);
    /* *ranks: number of ranks that wrote optimizer slices. folder: for messages. */
    tare_status (*read)(void *ctx, const struct state_reader *s, const char *folder, int64_t *ranks, struct err *e);
};

/* Writes everything into a folder from checkpoint_begin. tokenizer: folder with its files, or NULL.
 * optimizer: whether the training can be resumed. Each rank writes its slices, rank 0 the rest. */
tare_status training_saved_write(const char *folder, const struct training *t, const char *tokenizer, bool optimizer,
                                 const struct saved_state *state, struct err *e);
/* Reads a checkpoint into model and trainer. */
tare_status training_saved_read(const char *folder, const struct training *t, const struct saved_state *state, struct err *e);

/* Checks a value that a resumed run cannot change. TARE_E_CONFIG names the key. */
tare_status training_saved_expect(const struct state_reader *s, const char *name, int64_t want, const char *key, struct err *e);
/* Checks the rows of data.train = file by their hash. folder: the checkpoint, for the message. */
tare_status training_saved_expect_rows(const struct state_reader *s, uint64_t hash, const char *file, const char *folder,
                                       struct err *e);
/* Reads the number of ranks that wrote the optimizer from section "ranks"; TARE_E_CONFIG if none
 * did. */
tare_status training_saved_ranks(const struct state_reader *s, const char *folder, int64_t *ranks, struct err *e);
/* Returns the precision in which the model is saved, from model.save_dtype. */
enum dtype training_saved_dtype(const struct config *c, const struct model *m);

#endif
