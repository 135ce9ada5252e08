/* Rewards of steps (grpo_process) on cases that were computed by hand. */
#include "hand.h"

static void grpo_process__by_hand(void **state)
{
    (void)state;
    const struct hand cases[] = {
        {.name = "steps worth 1, 3 and 2: mu 2, sigma 1; a token has the steps that end at it or after it",
         .plugin = "grpo_process",
         .parameters = {"delta=1e-300"},
         .steps = {"{\"groups\":[{\"rewards\":[0,0],\"lengths\":[4,2],\"segments\":[[1,1,2,0],[1,1]],"
                   "\"segment_rewards\":[[0,1,3,0],[0,2]]}]}"},
         .tokens = "0 0 1 0  0 0",
         .advantages = "0 0"},
        {.name = "a rollout without steps is one step: 3 next to 1 and 2",
         .plugin = "grpo_process",
         .parameters = {"delta=1e-300"},
         .steps = {"{\"groups\":[{\"rewards\":[3,0],\"lengths\":[1,2],\"segments\":[[0],[1,2]],\"segment_rewards\":[[0],[1,2]]}]}"},
         .tokens = "1  -1 0",
         .advantages = "1 -1"},
        {.name = "no steps at all: grpo",
         .plugin = "grpo_process",
         .parameters = {"delta=1e-300"},
         .steps = {"{\"groups\":[{\"rewards\":[1,0],\"lengths\":[2,1],\"segments\":[[0,0],[0]],\"segment_rewards\":[[0,0],[0]]}]}"},
         .tokens = "0.70710676908493042 0.70710676908493042  -0.70710676908493042",
         .advantages = "0.7071067811865475 -0.7071067811865475"},
        {.name = "steps of equal worth: exactly 0",
         .plugin = "grpo_process",
         .steps = {"{\"groups\":[{\"rewards\":[1,0],\"lengths\":[2,1],\"segments\":[[1,2],[1]],\"segment_rewards\":[[0.1,0.1],[0.1]"
                   "]}]}"},
         .tokens = "0 0  0",
         .advantages = "0 0"},
    };
    CHECK_ALL(cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(grpo_process__by_hand)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
