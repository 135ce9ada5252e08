/* tare plugin ABI, major 1, DRAFT: environments, which answer the policy's turns in an episode.
 *
 * The kind may change until it is stable; its number and names then stay.
 *
 * One episode in one session:
 *   open          a session, which any number of episodes may use one after another
 *   reset         begins an episode: the messages that follow the prompt's, tools, a state
 *   ...the policy samples a turn...
 *   step          answers the turn: messages, a reward, and whether the episode has ended
 *   close
 *
 * Rewards of the turns are added; the host gives them to estimators as "turn.reward". Equal seeds and
 * equal turns give equal observations where TARE_ENVIRONMENT_REPEATS is set. */
#ifndef TARE_ENVIRONMENT_H
#define TARE_ENVIRONMENT_H

#include "../batch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Flags of tare_environment. */
enum {
    TARE_ENVIRONMENT_TOGETHER = 1, /* step gets all waiting turns in one call, from one thread */
    TARE_ENVIRONMENT_REPEATS = 4   /* equal seeds and turns give equal observations */
};

/* Who speaks. The host refuses an unknown number. */
enum { TARE_ROLE_SYSTEM = 1, TARE_ROLE_USER, TARE_ROLE_TOOL };

/* State of an episode. The host refuses an unknown number. */
enum {
    TARE_EPISODE_RUNNING = 0,
    TARE_EPISODE_DONE,     /* it came to its end */
    TARE_EPISODE_TRUNCATED /* it was cut short: a limit of the environment */
};

/* A message of the environment. */
typedef struct tare_message {
    uint32_t struct_size;
    int32_t role;            /* TARE_ROLE_... */
    tare_text call_id, name; /* of the tool call that it answers; size 0: none */
    tare_text text;
    tare_text parts; /* reserved: size 0 */
} tare_message;

/* A tool call that the policy made. */
typedef struct tare_call {
    uint32_t struct_size, flags;
    tare_text id, name;
    tare_text arguments; /* a JSON object */
} tare_call;

/* An episode to begin. Rollouts of one group have the same seed and each its own noise. */
typedef struct tare_episode {
    uint32_t struct_size, flags;
    tare_text row;      /* the data set's row as a JSON object; size 0: none */
    tare_text messages; /* of the prompt, as a JSON list */
    uint64_t prompt_uid;
    int64_t group, index;
    uint64_t seed[2];              /* of the task: equal in a group */
    uint64_t noise[2];             /* of the rollout */
    int64_t max_turns, max_tokens; /* 0: no limit */
    int64_t deadline_ns;           /* on the clock of host->now_ns; 0: none */
} tare_episode;

/* A turn of the policy. */
typedef struct tare_act {
    uint32_t struct_size, flags;
    int64_t turn; /* from 0 */
    tare_text text;
    const tare_call *const *call; /* [n_calls] */
    int64_t n_calls;
    int64_t n_unparsed;   /* tool calls that could not be read */
    const int32_t *token; /* [n_tokens] */
    int64_t n_tokens;
    int64_t deadline_ns; /* 0: none */
    int32_t finish;      /* TARE_FINISH_... */
    int32_t reserved;
} tare_act;

/* The answer of reset and step; the host's. On entry RUNNING, reward 0, no verdict. */
typedef struct tare_observation {
    uint32_t struct_size;
    int32_t end;     /* TARE_EPISODE_... */
    double reward;   /* of this turn, finite */
    int32_t verdict; /* TARE_VERDICT_... of the episode, when it ends; 0: none */
    uint32_t flags;
    void *ctx;
    /* Adds a message; the host copies it. */
    tare_status (*say)(void *ctx, const tare_message *message);
    /* Text that names the state, equal for equal states; NULL: not wanted. */
    const tare_stream *state_key;
    const tare_stream *tools; /* in reset: the tools as a JSON list of schemas; NULL elsewhere */
    const tare_stream *stop;  /* in reset: one stop text a line; NULL elsewhere */
    const tare_stream *note;  /* a line for people; NULL: not wanted */
} tare_observation;

/* The function table of an environment. Required beside the head's: open, close, reset, step. No two
 * calls run on one session at the same time. */
typedef struct tare_environment {
    TARE_HEAD;
    /* [any] [const] Returns the TARE_USES_... bits (verifier.h); NULL: 0. */
    uint32_t (*uses)(const tare_value *values);
    /* [any] [const] Writes what the environment is, as one JSON object. NULL: not offered. */
    tare_status (*card)(const tare_value *values, const tare_stream *out, tare_error *error);
    /* [worker] Makes a session and sets *session. After an error close is not called. */
    tare_status (*open)(void *self, void **session, tare_error *error);
    /* [worker] */
    void (*close)(void *self, void *session);
    /* [worker] Begins an episode; what the session had before is forgotten. */
    tare_status (*reset)(void *self, void *session, const tare_episode *episode, tare_observation *out, tare_error *error);
    /* [worker] Answers turns: session, act and out are [n], n is 1 without
     * TARE_ENVIRONMENT_TOGETHER. */
    tare_status (*step)(void *self, void *const *session, const tare_act *const *act, tare_observation *const *out, int64_t n,
                        tare_error *error);
    /* Both or neither. [worker] Writes the session's state, and reads it into an opened session. */
    tare_status (*save_session)(void *self, const void *session, const tare_stream *out, tare_error *error);
    tare_status (*load_session)(void *self, void *session, const tare_stream *in, tare_error *error);
    /* [worker] [const] Writes an act that is legal in the session's state, drawn with the two random
     * words of draw, whatever it is worth: episodes of such acts teach a model the format and not
     * the task (`tare env demo`). NULL: not offered. */
    tare_status (*suggest)(void *self, const void *session, const uint64_t *draw, const tare_stream *out, tare_error *error);
} tare_environment;

#ifdef __cplusplus
}
#endif
#endif
