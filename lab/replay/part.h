/* TO.part, in which a fork is put together before it is TO, held by one process: flock on its file fork.unfinished. A process that is killed leaves the folder
 * with that file; the next fork takes it over. */
#ifndef TARE_LAB_REPLAY_PART_H
#define TARE_LAB_REPLAY_PART_H

#include "base/fs.h"

/* Of a folder of a fork and of nothing else: its files may be removed. */
#define PART_MARK "fork.unfinished"

struct part {
    char path[FS_PATH];
    int lock; /* -1: not held */
};
/* TARE_E_STATE: the folder holds a file, and is not what is left of a fork. */
tare_status part_check(const char *folder, struct err *e);
tare_status part_no_file(void *ctx, const char *folder, const char *name, struct err *e); /* for fs_each: there is one */
/* Made, held and empty but for the mark; path is set. TARE_E_STATE: another process has it. part_let_go in any case. */
tare_status part_take(struct part *p, struct err *e);
/* It has the name TO: the mark goes. Still held after an error: the mark is there, and it may be given its name back. */
tare_status part_named(struct part *p, const char *to, struct err *e);
/* A folder that is still TO.part goes, and with it what it holds. */
void part_let_go(struct part *p);
/* A folder with the mark alone, which is held by whoever holds TO.part. */
tare_status part_begin(const char *folder, struct err *e);

#endif
