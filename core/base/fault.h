/* Faults that tests inject at named points of the program, through TARE_FAULT in the environment.
 * Without it, a point costs one check.
 *
 *   TARE_FAULT=stage=update,step=5,kind=kill tare train ...
 *
 * kills the process (SIGKILL) when it reaches the point `update` of step 5, however fast the
 * machine is. Keys; all but kind are optional:
 *   kind    kill; hang (sleeps forever); fail (an error is returned); nan (the error for a number
 *           that is not finite); exit (exits without a message); stop (sends itself SIGINT);
 *           freeze (sends itself SIGSTOP: the test acts, then sends SIGCONT); flip (silently flips
 *           one bit of this rank's weights, at the points below that allow it)
 *   stage   the point's name; default: every point
 *   step    default: every step
 *   rank    default: every rank
 *   count   skip the first count - 1 matching passes (default 1: skip none); counted per process
 *   after   delay in seconds, on a separate thread (kill and exit only) */
#ifndef TARE_CORE_BASE_FAULT_H
#define TARE_CORE_BASE_FAULT_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* Points: the stages of comm_stage (dist/comm.h), and these points of a single process:
 *   checkpoint.files, checkpoint.listed, checkpoint.named
 *               the files are written; complete.json is written; the folder has its final name
 *   sample      on each rank: before its groups are sampled
 *   rollback    on each rank: before the state of a checkpoint is read back; its record is written
 *   recorded    the sinks have the step's metrics
 *   locking     before a folder is locked: 0 a run's, an evaluation's or a sweep's, 1 a new
 *               fork's, 2 before waiting for a process that tests whether a lock is held
 *   opening     a run starts or resumes: 0 nothing is written yet, 1 the chain's link,
 *               2 config.ini, 3 manifest.json, 4 later dumps are removed, 5 later metrics are
 *               removed
 *   questions   an evaluation's record holds `step` questions
 *   result      a supervised training: 0 its model is written but not renamed, 1 the model has its
 *               final name and the checkpoints still exist
 *   cell        `step` cells of a sweep are done
 * Points for kind = flip only, on several ranks:
 *   weights     the update begins: a bit of the rank's own weights, or of another rank's shard if
 *               the rank holds all of them (dist.shard zero1, none)
 *   gathered    weights are prepared for sampling: a bit of another rank's shard, as received
 * Errors: TARE_E_INVALID if TARE_FAULT cannot be parsed; TARE_E_GENERIC for kind = fail. */
tare_status fault_point(int rank, const char *stage, int64_t step, struct err *e);
/* Set *flips if a fault of kind flip applies at this point; fault_point ignores such faults. */
tare_status fault_flips(int rank, const char *stage, int64_t step, bool *flips, struct err *e);

#endif
