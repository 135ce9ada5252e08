/* The life of a run. Arrows name the function that makes the transition.
 *
 *   RUN_CLOSED --run_open--> RUN_OPENING --run_open--> RUN_READY
 *
 *   RUN_READY, RUN_RECORDED                  --take_batch--------> RUN_COLLECTING
 *
 *   RUN_COLLECTING                           --learn_from_batch--> RUN_UPDATING         the batch is finished
 *                                            --stage_verify------> RUN_VERIFY_FAILED
 *                                            --stage_rollout-----> RUN_OVERFLOWED
 *   RUN_COLLECTING, _VERIFY_FAILED, _OVERFLOWED --forget_step----> RUN_READY            an error or an interruption
 *   RUN_OVERFLOWED, RUN_UPDATING             --take_batch--------> RUN_COLLECTING       after run_roll_back
 *
 *   RUN_UPDATING                             --one_step----------> RUN_RECORDED
 *                                            --train_step--------> RUN_BROKEN           an error
 *   RUN_RECORDED                             --train_step--------> RUN_BROKEN           its checkpoint failed
 *
 *   RUN_READY, RUN_UPDATING                  --evaluate----------> RUN_EVALUATING --evaluate--> the same
 *   any                                      --run_close---------> RUN_CLOSED
 *
 * Invariants
 *  1. Up to RUN_UPDATING a step changes nothing but the batch, the cursor and the cluster's counts: forget_step puts the latter two back, and the step
 *     can be made again with the same bits.
 *  2. In RUN_READY and RUN_RECORDED weights and states are those after step `step`, and train_save may write a checkpoint; in RUN_BROKEN it refuses.
 *  3. All ranks are in the same state whenever a stage ends.
 *  4. In RUN_EVALUATING plugins do not hear of an interruption: it waits until the evaluation is done, for the step before it cannot be made again. */
#ifndef TARE_CORE_LOOP_RUN_STATE_H
#define TARE_CORE_LOOP_RUN_STATE_H

enum run_state {
    RUN_CLOSED,
    RUN_OPENING,
    RUN_READY,         /* open, or a step was forgotten */
    RUN_COLLECTING,    /* a step has begun */
    RUN_VERIFY_FAILED, /* a verifier's error, not an interruption, ended the step, on all ranks */
    RUN_OVERFLOWED,    /* the sampler met logits that are not finite, on all ranks */
    RUN_UPDATING,      /* weights and states may have changed */
    RUN_EVALUATING,
    RUN_RECORDED, /* the step is done */
    RUN_BROKEN    /* the weights may be those of no whole step, or the step's checkpoint failed; only closing is left */
};

#endif
