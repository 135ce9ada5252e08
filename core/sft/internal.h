/* A supervised training in progress. Internal to sft.c and resume.c. */
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
    char out[FS_PATH], folder[FS_PATH]; /* of the result; of the checkpoints, until the result is there */
    int lock;                           /* on folder; -1: none */
    struct engine engine;
    struct arena arena;
    struct token_ids prompt_ids, ids;
    int64_t step, steps; /* done; wanted */
    int64_t cursor;      /* rows taken from the order */
    int64_t saved;       /* step of the last checkpoint; -1: none */
    int64_t checkpoints; /* in its folder, whole or damaged, before it began or went on */
    bool ended; /* the result is there: a process that is gone had written it, and only its checkpoints were left to remove */
};

/* Where the result and the checkpoints are; on rank 0 also whether a result that is there is this training's. */
tare_status sft_find_folders(struct sft *s, enum sft_start start, struct err *e);
/* On rank 0: takes the folder of the checkpoints, as `start` says; nothing is read yet. */
tare_status sft_take_folder(struct sft *s, enum sft_start start, struct err *e);
/* Removes what a process that was killed just after its model got its name left beside it. */
void sft_clear_ended(const char *out);
/* On rank 0, before the result gets its name: says in the folder of the checkpoints that it does. */
tare_status sft_mark_ended(const struct sft *s, struct err *e);
/* Collective: back to the last complete checkpoint, if there is one. */
tare_status sft_restore(struct sft *s, enum sft_start start, struct err *e);
tare_status sft_save(struct sft *s, struct err *e); /* collective */
/* On rank 0. done: the result is written, so the checkpoints go; else only a folder without any goes. */
tare_status sft_leave_folder(struct sft *s, bool done, struct err *e);

#endif
