/* Episodes of an environment whose acts the caller writes: a person in the terminal, a player of a
 * test, or the environment's own suggestions.
 *
 *   struct plugin_episode x;
 *   TRY(plugin_episode_open(instance, &x, e));
 *   TRY(plugin_episode_reset(&x, &(tare_episode){...}, e));
 *   while (!x.end) TRY(plugin_episode_step(&x, act, e));
 *   plugin_episode_close(&x); */
#ifndef TARE_CORE_PLUGIN_EPISODE_H
#define TARE_CORE_PLUGIN_EPISODE_H

#include "base/json.h"
#include "plugin/plugin.h"

/* A message of the last observation. The texts are parts of said and of names. */
struct episode_message {
    int32_t role;                  /* TARE_ROLE_... */
    int64_t begin, end;            /* in said */
    int64_t name, call_id, id_end; /* begins in names; the call's id ends at id_end */
};

struct plugin_episode {
    struct plugin_instance *i;
    void *session;
    bool open;
    int64_t turn; /* acts so far */
    /* The last observation: its messages one after another, its streams, and its numbers. */
    struct str said, key, tools, note, names;
    json_t *tool_list;               /* tools, read; NULL: none */
    struct episode_message *message; /* [n_messages] */
    int64_t n_messages, capacity;
    int32_t end, verdict;
    double reward, total; /* of the last act; of all */
    struct err fault;     /* in a message */
};

tare_status plugin_episode_open(struct plugin_instance *i, struct plugin_episode *out, struct err *e);
void plugin_episode_close(struct plugin_episode *x); /* no-op for a zeroed one */
/* Begins an episode. Refuses unknown roles, ends and verdicts, messages that are not valid UTF-8, tools
 * that are not a JSON list, and a reward that is not finite. */
tare_status plugin_episode_reset(struct plugin_episode *x, const tare_episode *episode, struct err *e);
/* An act of the policy: its text, and the tool calls that were read from it. */
struct episode_text {
    tare_text text;
    const tare_call *const *call; /* [n_calls] */
    int64_t n_calls, n_unparsed;
};
/* Takes one turn of an episode that has not ended. */
tare_status plugin_episode_step(struct plugin_episode *x, struct episode_text act, struct err *e);
/* Appends an act that the environment suggests. TARE_E_UNSUPPORTED: it suggests none. */
tare_status plugin_episode_suggest(const struct plugin_episode *x, const uint64_t draw[2], struct str *out, struct err *e);

#endif
