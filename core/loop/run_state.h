/* The life of a run. Arrows name the function that makes the transition.
 *
 *   RUN_CLOSED --run_open--> RUN_OPENING --run_open--> RUN_READY
 *
 *   RUN_READY, RUN_RECORDED      --take_batch--------> RUN_COLLECTING
 *   RUN_COLLECTING               --learn_from_batch--> RUN_UPDATING       the batch is finished
 *                                --stage_verify------> RUN_PLUGIN_FAILED
 *                                --stage_rollout-----> RUN_PLUGIN_FAILED, RUN_OVERFLOWED
 *                                --forget_step-------> RUN_READY          error or interruption
 *   RUN_PLUGIN_FAILED            --forget_step-------> RUN_READY
 *   RUN_OVERFLOWED               --forget_step-------> RUN_READY
 *                                --take_batch--------> RUN_COLLECTING     after run_roll_back
 *   RUN_UPDATING                 --take_batch--------> RUN_COLLECTING     after run_roll_back
 *                                --one_step----------> RUN_RECORDED
 *                                --train_step--------> RUN_BROKEN         error
 *   RUN_RECORDED                 --train_step--------> RUN_BROKEN         its checkpoint failed
 *
 *   RUN_READY, RUN_UPDATING      --evaluate----------> RUN_EVALUATING --evaluate--> as before
 *   any                          --run_close---------> RUN_CLOSED
 *
 * Invariants:
 *
 *  1. Before RUN_UPDATING a step changes only the batch, the cursor and the clusters' counts.
 *     forget_step resets the latter two, and the step can be repeated bit-identically.
 *  2. In RUN_READY and RUN_RECORDED weights and states are those after step `step`, and train_save
 *     may write a checkpoint. In RUN_BROKEN train_save refuses.
 *  3. All ranks are in the same state when a stage ends.
 *  4. In RUN_EVALUATING plugins do not see an interruption: it takes effect after the evaluation,
 *     because the step before it cannot be repeated. */
#ifndef TARE_CORE_LOOP_RUN_STATE_H
#define TARE_CORE_LOOP_RUN_STATE_H

enum run_state {
    RUN_CLOSED,
    RUN_OPENING,
    RUN_READY,         /* open, or a step was forgotten */
    RUN_COLLECTING,    /* a step has begun */
    RUN_PLUGIN_FAILED, /* an error of a verifier or environment, no interruption, ended the step, on all ranks */
    RUN_OVERFLOWED,    /* the sampler computed non-finite logits, on all ranks */
    RUN_UPDATING,      /* weights and states may have changed */
    RUN_EVALUATING,
    RUN_RECORDED, /* the step is finished */
    /* The weights may belong to no whole step, or the step's checkpoint failed. The run can only be
     * closed. */
    RUN_BROKEN
};

#endif
