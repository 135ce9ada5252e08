/* Estimators on cases that were computed by hand, with the arithmetic in comments. */
#include "hand.h"

/* ---------------------------------------------------------------- one step, one group at a time */

static void james_stein__by_hand(void **state)
{
    (void)state;
    /* three prompts with means 1/2, 1, 0; what chance makes of the first one's mean: (1/2)/2 = 1/4,
     * of the others' 0. first:  target (1+0)/2, v = 0, lambda = 0: the mean of the other rollout
     * second: target (1/2+0)/2 = 1/4, v = 1/8, s = 1/16, lambda = 2/3 (1/8)/(3/16) = 4/9, b = 5/9 +
     * 4/9 1/4 = 2/3 third:  target 3/4, the same lambda, b = 4/9 3/4 = 1/3 */
    static const char *const STEP = "{\"groups\":[{\"rewards\":[1,0]},{\"rewards\":[1,1]},{\"rewards\":[0,0]}]}";
    const struct hand cases[] = {
        {.name = "three prompts",
         .plugin = "james_stein",
         .steps = {STEP},
         .advantages = "1 -1  0.3333333333333333 0.3333333333333333  -0.3333333333333333 -0.3333333333333333",
         .baseline = "0.5 0.6666666666666667 0.3333333333333333",
         .scale = "nan nan nan",
         .confidence = "0 0.4444444444444444 0.4444444444444444"},
        {.name = "without (n-1)/n: lambda = 2/3",
         .plugin = "james_stein",
         .parameters = {"correction=false"},
         .steps = {STEP},
         .advantages = "1 -1  0.5 0.5  -0.5 -0.5"},
        {.name = "one prompt is rloo",
         .plugin = "james_stein",
         .steps = {"{\"groups\":[{\"rewards\":[1,0,0,0]}]}"},
         .advantages = "1 -0.3333333333333333 -0.3333333333333333 -0.3333333333333333",
         .confidence = "0"},
        {.name = "groups of one have the others' mean",
         .plugin = "james_stein",
         .steps = {"{\"groups\":[{\"rewards\":[1]},{\"rewards\":[0]},{\"rewards\":[0.5]}]}"},
         .advantages = "0.75 -0.75 0",
         .confidence = "1 1 1"},
        {.name = "a rollout alone", .plugin = "james_stein", .steps = {"{\"groups\":[{\"rewards\":[3]}]}"}, .advantages = "0"},
    };
    CHECK_ALL(cases);
}

static void quantile__by_hand(void **state)
{
    (void)state;
    const struct hand cases[] = {
        {.name = "hard: p = 1/5 <= 0.6, b = 0, sigma = sqrt(1/5)",
         .plugin = "quantile",
         .parameters = {"delta=1e-300"},
         .steps = {"{\"groups\":[{\"rewards\":[0,1,0,0,0]}]}"},
         .advantages = "0 2.23606797749979 0 0 0",
         .baseline = "0"},
        {.name = "easy: p = 4/5 > 0.6, b = 1",
         .plugin = "quantile",
         .parameters = {"delta=1e-300"},
         .steps = {"{\"groups\":[{\"rewards\":[1,1,0,1,1]}]}"},
         .advantages = "0 0 -2.23606797749979 0 0",
         .baseline = "1"},
        {.name = "p = 0.6 is still hard; sigma = sqrt(0.3)",
         .plugin = "quantile",
         .parameters = {"delta=1e-300"},
         .steps = {"{\"groups\":[{\"rewards\":[1,1,1,0,0]}]}"},
         .advantages = "1.8257418583505538 1.8257418583505538 1.8257418583505538 0 0"},
        {.name = "released: 0.4 of 4 intervals is 1.6, between 0 and 1: b = 0.6",
         .plugin = "quantile",
         .parameters = {"convention=released", "delta=1e-300"},
         .steps = {"{\"groups\":[{\"rewards\":[1,1,1,0,0]}]}"},
         .advantages = "0.7302967433402215 0.7302967433402215 0.7302967433402215 -1.0954451150103321 -1.0954451150103321",
         .baseline = "0.6"},
        {.name = "half of four rewards are at most 0.3; sigma = sqrt(0.2/4)",
         .plugin = "quantile",
         .parameters = {"k=0.5", "ddof=0", "delta=1e-300"},
         .steps = {"{\"groups\":[{\"rewards\":[0.1,0.7,0.3,0.5]},{\"rewards\":[0.2,0.2]},{\"rewards\":[7]}]}"},
         .advantages = "-0.8944271909999159 1.7888543819998317 0 0.8944271909999159 0 0 0",
         .baseline = "0.3 0.2 7"},
    };
    CHECK_ALL(cases);
}

static void asymre__by_hand(void **state)
{
    (void)state;
    const struct hand cases[] = {
        {.name = "b = 1/2 - 0.1",
         .plugin = "asymre",
         .steps = {"{\"groups\":[{\"rewards\":[1,0,0,1]},{\"rewards\":[0.25]},{\"rewards\":[0,0]}]}"},
         .advantages = "0.6 -0.4 -0.4 0.6  0.1  0.1 0.1",
         .baseline = "0.4 0.15 -0.1"},
        {.name = "0 is dr_grpo",
         .plugin = "asymre",
         .parameters = {"delta_v=0"},
         .steps = {"{\"groups\":[{\"rewards\":[1,0,0,1]}]}"},
         .advantages = "0.5 -0.5 -0.5 0.5"},
    };
    CHECK_ALL(cases);
}

/* ---------------------------------------------------------------- tokens */

static void opd__by_hand(void **state)
{
    (void)state;
    const struct hand cases[] = {
        {.name = "teacher minus policy; the second completion is not the policy's own",
         .plugin = "opd",
         .parameters = {"coef=2"},
         .steps =
             {"{\"groups\":[{\"rewards\":[1,0],\"lengths\":[2,1],\"logprob\":[[-1,-2],[0]],\"ref_logprob\":[[-1.5,-1],[-3]]}]}"},
         .tokens = "-1 2 0",
         .advantages = "0.5 0"},
    };
    CHECK_ALL(cases);
}

static void entropy_top__by_hand(void **state)
{
    (void)state;
    /* A = 0.5 / sqrt(1/2) */
    const struct hand cases[] = {
        {.name = "two of ten tokens",
         .plugin = "entropy_top",
         .parameters = {"delta=1e-300"},
         .steps =
             {"{\"groups\":[{\"rewards\":[1,0],\"lengths\":[5,5],\"entropy\":[[0.1,0.9,0.2,0.3,0.4],[1.0,0.5,0.6,0.7,0.8]]}]}"},
         .tokens = "0 0.70710676908493042 0 0 0  -0.70710676908493042 0 0 0 0",
         .advantages = "0.7071067811865475 -0.7071067811865475"},
        {.name = "equal entropies are kept together; the share is of the batch, not of a group",
         .plugin = "entropy_top",
         .parameters = {"share=0.3", "delta=1e-300"},
         .steps = {"{\"groups\":[{\"rewards\":[1,0],\"lengths\":[2,1],\"entropy\":[[0.5,0.5],[0.5]]},"
                   "{\"rewards\":[0,1],\"lengths\":[2,1],\"entropy\":[[0,0.1],[0.2]]}]}"},
         .tokens = "0.70710676908493042 0.70710676908493042 -0.70710676908493042  0 0 0"},
        {.name = "all tokens: grpo",
         .plugin = "entropy_top",
         .parameters = {"share=1", "delta=1e-300"},
         .steps = {"{\"groups\":[{\"rewards\":[1,0],\"lengths\":[2,1],\"entropy\":[[0,1e-9],[40]]}]}"},
         .tokens = "0.70710676908493042 0.70710676908493042 -0.70710676908493042"},
    };
    CHECK_ALL(cases);
}

/* ---------------------------------------------------------------- a state by cluster */

static void rae__by_hand(void **state)
{
    (void)state;
    static const char *const FIRST = "{\"groups\":[{\"cluster\":0,\"rewards\":[1,0]},{\"cluster\":1,\"rewards\":[1,1]}]}";
    const struct hand cases[] = {
        {.name = "paper: b = (0 + 1/2)/2 and (0 + 1)/2, then the advantage",
         .plugin = "rae",
         .parameters = {"alpha=0.5"},
         .clusters = 2,
         .steps = {FIRST},
         .advantages = "0.75 -0.25 0.5 0.5",
         .baseline = "0.25 0.5"},
        {.name = "paper, one trajectory: A = alpha (R - b) = (1 - 1/4)/2; a prompt without a role starts at 0",
         .plugin = "rae",
         .parameters = {"alpha=0.5"},
         .clusters = 2,
         .steps = {FIRST, "{\"groups\":[{\"cluster\":0,\"rewards\":[1]},{\"rewards\":[-1]}]}"},
         .advantages = "0.375 -0.5"},
        {.name = "prime-rl: a role's first group has its own mean",
         .plugin = "rae",
         .parameters = {"alpha=0.5", "convention=prime-rl"},
         .clusters = 2,
         .steps = {"{\"groups\":[{\"cluster\":0,\"rewards\":[1,-1]},{\"cluster\":1,\"rewards\":[-1]}]}"},
         .advantages = "1 -1 0"},
        {.name = "prime-rl: against the baseline before; 0, then 1/2",
         .plugin = "rae",
         .parameters = {"alpha=0.5", "convention=prime-rl"},
         .clusters = 0,
         .steps = {"{\"groups\":[{\"rewards\":[0,0]}]}", "{\"groups\":[{\"rewards\":[1,1]}]}",
                   "{\"groups\":[{\"rewards\":[1,0]}]}"},
         .advantages = "0.5 -0.5"},
    };
    CHECK_ALL(cases);
}

static void eb_blend__starts_with_the_prior(void **state)
{
    (void)state;
    static const char *const STEP = "{\"groups\":[{\"cluster\":0,\"rewards\":[1,0,0,0]},{\"rewards\":[1]}]}";
    /* s = 1; four rollouts: w = 1/4, b = 1/8 + 3/4 mean of the others: 1/8 for the right one, 3/8
     * for the others; one: w = 1, b = 1/2 */
    const struct hand cases[] = {
        {.name = "scale cluster: sqrt(1/4)",
         .plugin = "eb_blend",
         .clusters = 1,
         .steps = {STEP},
         .advantages = "1.75 -0.75 -0.75 -0.75  1",
         .baseline = "0.3125 0.5",
         .scale = "0.5 0.5",
         .confidence = "0.25 1"},
        {.name = "scale none",
         .plugin = "eb_blend",
         .parameters = {"scale=none"},
         .clusters = 1,
         .steps = {STEP},
         .advantages = "0.875 -0.375 -0.375 -0.375  0.5",
         .scale = "nan nan"},
        {.name = "scale prompt: w' = 1/5, p = q = 0.1 + 0.8/4 = 0.3, sqrt(0.21); alone w' = 1/2, p = 3/4, sqrt(3/16)",
         .plugin = "eb_blend",
         .parameters = {"scale=prompt"},
         .clusters = 1,
         .steps = {STEP},
         .scale = "0.458257569495584 0.4330127018922193"},
        {.name = "another prior: w = 4/7, b = 4/7 0.2",
         .plugin = "eb_blend",
         .parameters = {"scale=none", "prior=4", "prior_mean=0.2"},
         .clusters = 1,
         .steps = {"{\"groups\":[{\"cluster\":0,\"rewards\":[0,0,0,0]}]}"},
         .advantages = "-0.11428571428571428 -0.11428571428571428 -0.11428571428571428 -0.11428571428571428"},
    };
    CHECK_ALL(cases);
}

static void eb_blend__fits_the_spread(void **state)
{
    (void)state;
    /* After [1,1,0,0] and [0,0,0,0]: N = 8, mu = (1/2 + 2)/9 = 5/18, V = mu (1 - mu); means 1/2 and
     * 0, variances 1/3 and 0: sigma^2 = 1/6, tau^2 = 1/8 - 1/16 - 1/24 = 1/48, 1/s = 1/8 + 1/9, s =
     * 72/17, and for four rollouts w = 24/41. */
    static const char *const TWO = "{\"groups\":[{\"cluster\":0,\"rewards\":[1,1,0,0]},{\"cluster\":0,\"rewards\":[0,0,0,0]}]}";
    const struct hand cases[] = {
        {.name = "b = 24/41 5/18 + 17/41 mean of the others; a cluster never met and a prompt without one have the prior's 1/4",
         .plugin = "eb_blend",
         .parameters = {"scale=none", "rho=1"},
         .clusters = 2,
         .steps =
             {TWO,
              "{\"groups\":[{\"cluster\":0,\"rewards\":[1,0,0,0]},{\"cluster\":1,\"rewards\":[0,0,0,0]},{\"rewards\":[0,0,0,0]}]}"},
         .advantages = "0.8373983739837398 -0.3008130081300813 -0.3008130081300813 -0.3008130081300813"
                       " -0.125 -0.125 -0.125 -0.125 -0.125 -0.125 -0.125 -0.125",
         .confidence = "0.5853658536585366 0.25 0.25"},
        {.name = "scale cluster: sqrt(5/18 13/18)",
         .plugin = "eb_blend",
         .parameters = {"rho=1"},
         .clusters = 1,
         .steps = {TWO, "{\"groups\":[{\"cluster\":0,\"rewards\":[0,0,0,0]}]}"},
         .scale = "0.4479032082388083"},
        {.name = "half forgotten: N = 4, mu = (1/2 + 1)/5; the moments over prompts do not change: 1/s = 1/8 + 1/5, w = "
                 "40/13/(40/13 + 3)",
         .plugin = "eb_blend",
         .parameters = {"scale=none", "rho=0.5"},
         .clusters = 2,
         .steps = {TWO, "{\"groups\":[{\"cluster\":1,\"rewards\":[1,1]}]}", "{\"groups\":[{\"cluster\":0,\"rewards\":[0,0,0,0]}]}"},
         .advantages = "-0.1518987341772152 -0.1518987341772152 -0.1518987341772152 -0.1518987341772152",
         .confidence = "0.5063291139240507"},
    };
    CHECK_ALL(cases);
}

static void eb_blend__limits(void **state)
{
    (void)state;
    const struct hand cases[] = {
        {.name = "all wrong: mu = 1/10, V = 9/100, no spread, s = 5, w = 5/8; one success gets (1 - 1/16)/0.3",
         .plugin = "eb_blend",
         .parameters = {"rho=1"},
         .clusters = 1,
         .steps = {"{\"groups\":[{\"cluster\":0,\"rewards\":[0,0,0,0]}]}",
                   "{\"groups\":[{\"cluster\":0,\"rewards\":[1,0,0,0]},{\"cluster\":0,\"rewards\":[0,0,0,0]}]}"},
         .advantages =
             "3.125 -0.625 -0.625 -0.625  -0.20833333333333334 -0.20833333333333334 -0.20833333333333334 -0.20833333333333334",
         .confidence = "0.625 0.625"},
        {.name = "the floor",
         .plugin = "eb_blend",
         .parameters = {"rho=1", "floor=0.5"},
         .clusters = 1,
         .steps = {"{\"groups\":[{\"cluster\":0,\"rewards\":[0,0,0,0]}]}", "{\"groups\":[{\"cluster\":0,\"rewards\":[1,0,0,0]}]}"},
         .advantages = "1.875 -0.375 -0.375 -0.375",
         .scale = "0.5"},
        {.name = "every prompt all right or all wrong: the history says nothing of a prompt, rloo",
         .plugin = "eb_blend",
         .parameters = {"scale=none"},
         .clusters = 1,
         .steps = {"{\"groups\":[{\"cluster\":0,\"rewards\":[1,1]},{\"cluster\":0,\"rewards\":[0,0]}]}",
                   "{\"groups\":[{\"cluster\":0,\"rewards\":[1,0]}]}"},
         .advantages = "1 -1",
         .confidence = "0"},
        {.name = "groups of one: the cluster's mean, (1/2 + 2)/4",
         .plugin = "eb_blend",
         .parameters = {"scale=none", "rho=1"},
         .clusters = 1,
         .steps = {"{\"groups\":[{\"cluster\":0,\"rewards\":[1]},{\"cluster\":0,\"rewards\":[0]},{\"cluster\":0,\"rewards\":[1]}]}",
                   "{\"groups\":[{\"cluster\":0,\"rewards\":[1]}]}"},
         .advantages = "0.375",
         .confidence = "1"},
        {.name = "any rewards: sigma^2 = 2, tau^2 = 29 - 25 - 1 = 3, mu = 20/5, 1/s = 3/2 + 1/5, w = 10/27",
         .plugin = "eb_blend",
         .parameters = {"scale=none", "rho=1", "prior_mean=0"},
         .clusters = 1,
         .steps = {"{\"groups\":[{\"cluster\":0,\"rewards\":[2,4]},{\"cluster\":0,\"rewards\":[6,8]}]}",
                   "{\"groups\":[{\"cluster\":0,\"rewards\":[10,6]}]}"},
         .advantages = "4.7407407407407405 -1.7777777777777777",
         .confidence = "0.37037037037037035"},
        {.name = "equal rewards that no binary number hits have no spread",
         .plugin = "eb_blend",
         .parameters = {"scale=none", "rho=1"},
         .clusters = 1,
         .steps = {"{\"groups\":[{\"cluster\":0,\"rewards\":[0.1,0.1]},{\"cluster\":0,\"rewards\":[0.1,0.1]},{\"cluster\":0,"
                   "\"rewards\":[0.1,0.1]}]}",
                   "{\"groups\":[{\"cluster\":0,\"rewards\":[0.1,0.1]}]}"},
         .confidence = "0.875"},
    };
    CHECK_ALL(cases);
}

/* ---------------------------------------- where the code and the papers part */

static void gpg__by_hand(void **state)
{
    (void)state;
    static const char *const STEP = "{\"groups\":[{\"rewards\":[1,0]},{\"rewards\":[1,1]}]}";
    const struct hand cases[] = {
        {.name = "paper: two of four rollouts are in groups of equal rewards, alpha = 4/2",
         .plugin = "gpg",
         .steps = {STEP},
         .advantages = "1 -1 0 0"},
        {.name = "verl: three of four rewards are not 0, alpha = 4/3",
         .plugin = "gpg",
         .parameters = {"convention=verl"},
         .steps = {STEP},
         .advantages = "0.6666666666666666 -0.6666666666666666 0 0"},
        {.name = "paper: rewards of -1 and 1, alpha = 2",
         .plugin = "gpg",
         .steps = {"{\"groups\":[{\"rewards\":[1,-1]},{\"rewards\":[-1,-1]}]}"},
         .advantages = "2 -2 0 0"},
        {.name = "no signal anywhere",
         .plugin = "gpg",
         .steps = {"{\"groups\":[{\"rewards\":[1,1]},{\"rewards\":[0]}]}"},
         .advantages = "0 0 0"},
    };
    CHECK_ALL(cases);
}

static void dapo__by_hand(void **state)
{
    (void)state;
    /* wrong answers of two lengths, and overlong = linear: rewards differ, verdicts do not; sigma =
     * sqrt(0.02) of the first group */
    static const char *const STEP = "{\"groups\":[{\"rewards\":[0,-0.2],\"verdicts\":[\"wrong\",\"wrong\"]},"
                                    "{\"rewards\":[1,0],\"verdicts\":[\"correct\",\"wrong\"]}]}";
    const struct hand cases[] = {
        {.name = "filter = reward keeps both", .plugin = "dapo", .steps = {STEP}, .weights = "1 1 1 1"},
        {.name = "filter = correct drops the first",
         .plugin = "dapo",
         .parameters = {"filter=correct"},
         .steps = {STEP},
         .weights = "0 0 1 1",
         .refill = 1},
    };
    CHECK_ALL(cases);
}

static void gdpo__by_hand(void **state)
{
    (void)state;
    /* The second component is a tenth of the first, as with "math:1 format:0.1". Standardised both
     * are 1 and -1 times sqrt(1/2), so that x is (0, sqrt 2, 0, -sqrt 2) where math and format
     * disagree in the first group; the weights 1,0.1 bring the order of the verifiers back. */
    static const char *const STEP = "{\"groups\":[{\"rewards\":[1,0.1],\"components\":[[1,0],[0,0.1]]},"
                                    "{\"rewards\":[1.1,0],\"components\":[[1,0.1],[0,0]]}]}";
    const struct hand cases[] = {
        {.name =
             /* x = +-0.7070, +-0.70610: the difference comes from delta 1e-4 */
         "weights of verifier.plugins cancel: the first group has no signal",
         .plugin = "gdpo",
         .parameters = {"convention=nemo"},
         .steps = {STEP},
         .advantages = "7.794168009460812e-06 -7.794168009460812e-06 1.2247448713667883 -1.2247448713667883"},
        {.name = "with weights 1,0.1 it has one",
         .plugin = "gdpo",
         .parameters = {"convention=nemo", "weights=1,0.1"},
         .steps = {STEP},
         .advantages = "0.7755559305062486 -0.7755559305062486 0.9478992555417409 -0.9478992555417409"},
    };
    CHECK_ALL(cases);
}

static void krpo__by_hand(void **state)
{
    (void)state;
    /* V = 1, Q = 0. released: before anything P = 1; after R = 1 K = 1/2, x = 1/2, P = 1/2: A =
     * (1/2)/sqrt(1/2); after R = 0 K = 1/3, x = 1/3, P = 1/3: A = (-1/3)/sqrt(1/3). time: the
     * step's mean 1/2 gives K = 1/2, x = 1/4, P = 1/2. */
    static const char *const STEP = "{\"groups\":[{\"cluster\":0,\"rewards\":[1,0]}]}";
    const struct hand cases[] = {
        {.name = "released: in the order of the rollouts",
         .plugin = "krpo",
         .parameters = {"order=released", "process_var=0", "meas_var=1", "delta=1e-300"},
         .clusters = 1,
         .steps = {STEP},
         .advantages = "0.7071067811865476 -0.5773502691896258"},
        {.name = "time: from the state before",
         .plugin = "krpo",
         .parameters = {"process_var=0", "meas_var=1", "delta=1e-300"},
         .clusters = 1,
         .steps = {STEP},
         .advantages = "1 0"},
        {.name = "time: after a step; a prompt without a cluster has x = 0, P = 1",
         .plugin = "krpo",
         .parameters = {"process_var=0", "meas_var=1", "delta=1e-300"},
         .clusters = 1,
         .steps = {STEP, "{\"groups\":[{\"rewards\":[1,1]}]}", "{\"groups\":[{\"cluster\":0,\"rewards\":[1]},{\"rewards\":[1]}]}"},
         .advantages = "1.0606601717798212 1"},
    };
    CHECK_ALL(cases);
}

static void bv_beta__by_hand(void **state)
{
    (void)state;
    /* A cluster never met: mu_hist = 1/2, SEM = sqrt(1/8), w = exp(-10 sqrt(1/8)) = 0.02914319311;
     * sigma_G of four with ddof 1: sqrt(1/4). Rewards of -1 count as 0: after one step of four a =
     * 1/2, b = 9/2, mu = 1/10, v = 9/100, w = exp(-10 sqrt(0.09/6)). */
    const struct hand cases[] = {
        {.name = "never met: w is 0.029 and not 0",
         .plugin = "bv_beta",
         .clusters = 1,
         .steps = {"{\"groups\":[{\"cluster\":0,\"rewards\":[0,0,0,1]}]}"},
         .confidence = "0.02914319311124245",
         .baseline = "0.2572857982778106"},
        {.name = "always -1: counted as 0, and not 0 in A",
         .plugin = "bv_beta",
         .parameters = {"delta=1e-300"},
         .clusters = 1,
         .steps = {"{\"groups\":[{\"cluster\":0,\"rewards\":[-1,-1,-1,-1]}]}",
                   "{\"groups\":[{\"cluster\":0,\"rewards\":[-1,-1,-1,-1]}]}"},
         .confidence = "0.293832655878073",
         .advantages = "-1.9875655505960845 -1.9875655505960845 -1.9875655505960845 -1.9875655505960845"},
    };
    CHECK_ALL(cases);
}

static void rl_zvp__by_hand(void **state)
{
    (void)state;
    /* equation 5: all right alpha H, all wrong -alpha (max H - H) */
    const struct hand cases[] = {
        {.name = "groups of equal rewards, and one that is not",
         .plugin = "rl_zvp",
         .parameters = {"alpha=0.5", "delta=1e-300"},
         .steps = {"{\"groups\":[{\"rewards\":[1],\"lengths\":[2],\"entropy\":[[1,3]]},{\"rewards\":[0],\"lengths\":[3],"
                   "\"entropy\":[[1,3,2]]},"
                   "{\"rewards\":[1,0],\"entropy\":[[1],[1]]}]}"},
         .tokens = "0.5 1.5  -1 0 -0.5  0.70710676908493042 -0.70710676908493042",
         .advantages = "1 -0.5 0.7071067811865475 -0.7071067811865475"},
    };
    CHECK_ALL(cases);
}

static void unjudged__rollouts_are_not_in_the_moments(void **state)
{
    (void)state;
    static const char *const LOST =
        "{\"groups\":[{\"cluster\":0,\"rewards\":[1,0,0],\"verdicts\":[\"correct\",\"wrong\",\"timeout\"]},"
        "{\"cluster\":0,\"rewards\":[0,0],\"verdicts\":[\"crashed\",\"timeout\"]}]}";
    const struct hand cases[] = {
        {.name = "the mean is 1/2 of two, not 1/3 of three; a group without any other has nothing",
         .plugin = "dr_grpo",
         .steps = {LOST},
         .advantages = "0.5 -0.5 0  0 0",
         .baseline = "0.5 nan",
         .weights = "1 1 0  0 0"},
        {.name = "nor in the history: mu = (1/2 + 1)/(1 + 2), s = 3",
         .plugin = "eb_blend",
         .parameters = {"scale=none", "rho=1"},
         .clusters = 1,
         .steps = {LOST, "{\"groups\":[{\"cluster\":0,\"rewards\":[0]}]}"},
         .advantages = "-0.5"},
        {.name = "a second verifier that crashed leaves half a reward",
         .plugin = "gdpo",
         .parameters = {"convention=nemo"},
         .steps = {"{\"groups\":[{\"rewards\":[1,1,0],\"components\":[[1,0],[0,1],[0,0]],\"component_verdicts\":"
                   "[[\"correct\",\"wrong\"],[\"wrong\",\"correct\"],[\"wrong\",\"crashed\"]]}]}"},
         .weights = "1 1 0"},
        {.name = "tokens too",
         .plugin = "reinforce_pp",
         .parameters = {"convention=nemo"},
         .steps = {"{\"groups\":[{\"rewards\":[0,1,0],\"lengths\":[2,1,1],\"verdicts\":[\"timeout\",\"correct\",\"wrong\"]}]}"},
         .tokens = "0 0 1 -1",
         .advantages = "0 1 -1"},
    };
    CHECK_ALL(cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(james_stein__by_hand),
        cmocka_unit_test(quantile__by_hand),
        cmocka_unit_test(asymre__by_hand),
        cmocka_unit_test(opd__by_hand),
        cmocka_unit_test(entropy_top__by_hand),
        cmocka_unit_test(rae__by_hand),
        cmocka_unit_test(eb_blend__starts_with_the_prior),
        cmocka_unit_test(eb_blend__fits_the_spread),
        cmocka_unit_test(eb_blend__limits),
        cmocka_unit_test(gpg__by_hand),
        cmocka_unit_test(dapo__by_hand),
        cmocka_unit_test(gdpo__by_hand),
        cmocka_unit_test(krpo__by_hand),
        cmocka_unit_test(bv_beta__by_hand),
        cmocka_unit_test(rl_zvp__by_hand),
        cmocka_unit_test(unjudged__rollouts_are_not_in_the_moments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
