/* State of a supervised training. Internal to sft.c and resume.c. */
#ifndef TARE_CORE_SFT_INTERNAL_H
#define TARE_CORE_SFT_INTERNAL_H

#include "base/fs.h"
#include "engine/engine.h"
#include "engine/models.h"
#include "rollout/prompts.h"
#include "sft/sft.h"

struct sft {
    const struct config *config;
    struct comm comm;
    /* folder of the result; folder of the checkpoints, until the result is complete */
    char out[FS_PATH], folder[FS_PATH];
    int lock; /* lock on folder; -1: none */
    struct engine engine;
    struct arena arena;
    struct token_ids prompt_ids, ids;
    struct str sampled;  /* a byte for each of ids: 1 if it is learnt */
    int64_t step, steps; /* steps done; steps wanted */
    int64_t cursor;      /* rows taken from the data order */
    int64_t saved;       /* step of the last checkpoint; -1: none */
    int64_t checkpoints; /* checkpoints in its folder, complete or damaged, before this process */
    /* the result exists: a former process wrote it and only its checkpoints remain to be removed */
    bool ended;
};

/* Finds the folders of the result and the checkpoints; on rank 0 also checks whether an existing
 * result belongs to this training. */
tare_status sft_find_folders(struct sft *s, enum sft_start start, struct err *e);
/* On rank 0: locks the folder of the checkpoints, as `start` requires. Reads nothing yet. */
tare_status sft_take_folder(struct sft *s, enum sft_start start, struct err *e);
/* Removes files left by a process that was killed just after it renamed its model. */
void sft_clear_ended(const char *out);
/* On rank 0: marks the training as ended in the folder of the checkpoints, before the result is
 * renamed. */
tare_status sft_mark_ended(const struct sft *s, struct err *e);
/* Collective: restores the last complete checkpoint, if there is one. */
tare_status sft_restore(struct sft *s, enum sft_start start, struct err *e);
tare_status sft_save(struct sft *s, struct err *e); /* collective */
/* On rank 0. done: the result is complete, so the folder is removed; otherwise only a folder
 * without checkpoints is. */
tare_status sft_leave_folder(struct sft *s, bool done, struct err *e);

#endif
