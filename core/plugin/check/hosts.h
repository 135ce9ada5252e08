/* Declarations shared by hosts.c and host_calls.c, the tests under hosts of other sizes. */
#ifndef TARE_CORE_PLUGIN_CHECK_HOSTS_H
#define TARE_CORE_PLUGIN_CHECK_HOSTS_H

#include "plugin/check/internal.h"

enum host_age { HOST_TODAY, HOST_OLDEST, HOST_FUTURE };
enum { BEHIND = 64, POISON = 0xff };

/* The host's structs as released with each minor version: a line here names the last member that 1.0
 * has, and a later version adds a column. */
#define END(S, LAST) (int64_t)(offsetof(S, LAST) + sizeof(((S *)0)->LAST))
#define SIZE_ERROR END(tare_error, message)
#define SIZE_STREAM END(tare_stream, reserved)
#define SIZE_HOST END(tare_host, extension)
#define SIZE_SETUP END(tare_setup, dataset)
#define SIZE_SIZES END(tare_sizes, clusters)
#define SIZE_UPDATE END(tare_update, record)
#define SIZE_BATCH END(tare_batch, column)
#define SIZE_ADVANTAGES END(tare_advantages, extra_groups)
#define SIZE_COMPLETION END(tare_completion, off_policy)
#define SIZE_VERDICT END(tare_verdict, n_segments)
#define SIZE_WAITING END(tare_waiting, wait_ns)
#define SIZE_PROMPTS END(tare_prompts, row)
#define SIZE_ASSIGNMENT END(tare_assignment, distance)
#define SIZE_LOSS END(tare_loss, shaping)
#define SIZE_TOKENS END(tare_tokens, column)
#define SIZE_TOKEN_LOSS END(tare_token_loss, clipped)
#define SIZE_DATASET END(tare_dataset, column)
#define SIZE_DRAW END(tare_draw, n_drawn)
#define SIZE_CHOICE END(tare_choice, n_rollouts)
#define SIZE_KEPT END(tare_kept, extra_groups)
#define SIZE_EPISODE END(tare_episode, deadline_ns)
#define SIZE_ACT END(tare_act, reserved)
#define SIZE_CALL END(tare_call, arguments)
#define SIZE_OBSERVATION END(tare_observation, note)

/* The test that runs: one at a time in a process, and none that starts threads. */
struct host_run {
    struct check *check;
    const struct plugin *real;
    enum host_age age;
    uint64_t hash;
    int64_t calls;
    tare_sizes sizes;
    struct err fault; /* a write behind a struct */
};
extern struct host_run HOST_RUN;

/* Adds outputs to the hash. NULL: nothing. */
void host_add(const void *data, int64_t size);
/* Returns zeroed memory that lives as long as the test, or NULL. */
void *host_space(int64_t size);
/* Copies a host's struct. flags: its second member is a word of flags. Returns the struct itself where
 * there is no memory, and under today's host. */
void *host_lend(const void *from, int64_t size, bool flags);
/* Takes back an output struct: its members after the first `head` bytes. */
void host_take_back(void *to, const void *copy, int64_t size, int64_t head, const char *what);
/* Returns a stream that passes the bytes on and adds them to the hash. */
const tare_stream *host_lend_stream(const tare_stream *s);
/* Ends a call of one of the plugin's functions, with the error that it was lent. */
tare_status host_ended(const char *function, tare_status status, tare_error *error, const tare_error *mine);

union host_table {
    tare_head head;
    tare_estimator estimator;
    tare_verifier verifier;
    tare_encoder encoder;
    tare_codebook codebook;
    tare_objective objective;
    tare_curriculum curriculum;
    tare_environment environment;
};

/* Replaces the plugin's functions in the table by those that lend it the host's structs. */
void host_between(const struct plugin *p, union host_table *t);

#endif
