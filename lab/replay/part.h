/* TO.part, the folder in which a fork is assembled before it is renamed to TO. One process holds it
 * by flock on its file fork.unfinished. A killed process leaves the folder with that file, and the
 * next fork takes it over. */
#ifndef TARE_LAB_REPLAY_PART_H
#define TARE_LAB_REPLAY_PART_H

#include "base/fs.h"

/* Marks the folder of an unfinished fork, whose files may be removed. */
#define PART_MARK "fork.unfinished"

struct part {
    char path[FS_PATH];
    int lock; /* -1: not held */
};
/* TARE_E_STATE: the folder has files and is not an unfinished fork. */
tare_status part_check(const char *folder, struct err *e);
/* Callback for fs_each that fails on the first file. */
tare_status part_no_file(void *ctx, const char *folder, const char *name, struct err *e);
/* Creates p->path, locks it and empties it except for the mark. TARE_E_STATE: another process holds
 * it. Call part_let_go in every case. */
tare_status part_take(struct part *p, struct err *e);
/* Removes the mark and unlocks, after the folder was renamed to TO. If it is still locked after an
 * error, the mark exists and the folder may be renamed back. */
tare_status part_named(struct part *p, const char *to, struct err *e);
/* Removes a folder that is still TO.part with its contents, and unlocks. */
void part_let_go(struct part *p);
/* Creates an empty folder with the mark. The lock on TO.part covers it. */
tare_status part_begin(const char *folder, struct err *e);

#endif
