/* Faults that tests put at named points of the program, by TARE_FAULT in the environment; without it a point costs one look.
 *
 *   TARE_FAULT=stage=update,step=5,kind=kill tare train ...
 *
 * kills the process (SIGKILL) when it comes to the point `update` of step 5, however fast the machine is. Keys, all but kind optional:
 *   kind    kill; hang (sleeps for good); fail (an error is returned); nan (the error of a number that is not finite); exit (leaves without a word); stop (SIGINT to itself);
 *           freeze (SIGSTOP to itself: the test goes on when it has done something, and sends SIGCONT); flip (a bit of this rank's weights turns, at the
 *           points below that name them; nothing is said)
 *   stage   the point's name; left out: every point
 *   step    left out: every step
 *   rank    left out: every rank
 *   count   the first so many - 1 passes of a point that fits are let through (default 1: none); counted in each process
 *   after   so many seconds later, from a thread of its own (kill and exit only)
 */
#ifndef TARE_CORE_BASE_FAULT_H
#define TARE_CORE_BASE_FAULT_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* Points: the stages of comm_stage (dist/comm.h), and in one process alone
 *   checkpoint.files, checkpoint.listed, checkpoint.named   the files are written; complete.json too; the folder has its final name
 *   sample      on each rank: its groups are about to be sampled
 *   rollback    on each rank: the state of a checkpoint is about to be read back; its record is made
 *   recorded    the sinks have the step's metrics
 *   locking     a folder is about to be locked: 0 a run's, an evaluation's or a sweep's, 1 that of a fork which is made, 2 a process that
 *               looks whether a lock is held is waited for
 *   opening     a run begins or goes on: 0 nothing is written yet, 1 the chain's link, 2 config.ini, 3 manifest.json, 4 later dumps are removed, 5 later metrics
 *   questions   an evaluation's record holds `step` questions
 *   result      a supervised training: 0 its model is written and has no name yet, 1 it has its name, and its checkpoints are still there
 *   cell        `step` cells of a sweep are done
 * and for kind = flip alone, on several ranks
 *   weights     the update begins: a bit of the weights that the rank holds, of another rank's piece where it holds all (dist.shard zero1, none)
 *   gathered    weights are made ready to be sampled from: a bit of another rank's piece, as it has arrived
 * Errors: TARE_E_INVALID, TARE_FAULT cannot be read; TARE_E_GENERIC, kind = fail. */
tare_status fault_point(int rank, const char *stage, int64_t step, struct err *e);
/* Whether kind = flip at this point; such a fault is none of fault_point's. */
tare_status fault_flips(int rank, const char *stage, int64_t step, bool *flips, struct err *e);

#endif
