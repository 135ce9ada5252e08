/* Shared by the built-in environments. A file defines struct session, its parameters PARAMS and the
 * functions of struct rules, and ends with ENVIRONMENT.
 *
 * A session is plain bytes, at most 64, which save_session writes as they are. Hidden states come from
 * the episode's seed, unless the row has them. An act that the rules do not allow gets the
 * observation `!` and has used up its turn. */
#ifndef ENVIRONMENTS_ENVIRONMENT_H
#define ENVIRONMENTS_ENVIRONMENT_H

#include "../../common/built_in.h"

#include <tare/draft/environment.h>
#include <tare/json.h>

/* A stream of random numbers: those of a key, from `at` on. */
struct draw {
    const uint64_t *key; /* [2] */
    uint64_t at;
};
uint64_t environment_draw(struct draw *d);
/* Returns a number from 0 to n - 1. */
int64_t environment_below(struct draw *d, int64_t n);
/* Returns 1 with this probability. */
int environment_chance(struct draw *d, double probability);

/* Reads a whole number from min to max from the row; a row without the field leaves *out unchanged. */
tare_status environment_row_number(const tare_episode *episode, const char *field, int64_t min, int64_t max, int64_t *out,
                                   tare_error *error);
/* Reads a text of n characters, each one of `allowed`, and writes their positions in it. */
tare_status environment_row_symbols(const tare_episode *episode, const char *field, const char *allowed, int64_t n, uint8_t *out,
                                    tare_error *error);
/* Returns the position in `symbols` of a text of one character; -1: another text. */
int64_t environment_symbol(tare_text text, const char *symbols);
/* Reads a whole number of at most 8 digits; -1: another text. */
int64_t environment_number(tare_text text);

/* Gives an observation. */
__attribute__((format(printf, 2, 3))) tare_status environment_say(tare_observation *out, const char *format, ...);
/* Ends the episode with the reward of its last turn, 1 or 0. */
tare_status environment_end(tare_observation *out, int right);

/* The functions get the parameters v and the session.
 *   begin     sets the zeroed session and says the task
 *   act       answers an act
 *   valid     true for bytes that may be a session
 *   suggest   writes a legal act, drawn without a look at what it is worth */
struct rules {
    int64_t size;
    const char *card;
    tare_status (*begin)(const tare_value *v, void *session, const tare_episode *episode, tare_observation *out, tare_error *error);
    tare_status (*act)(const tare_value *v, void *session, tare_text act, tare_observation *out);
    int (*valid)(const tare_value *v, const void *session);
    tare_status (*suggest)(const tare_value *v, const void *session, struct draw *d, const tare_stream *out);
};
extern const struct rules ENVIRONMENT_RULES;
extern const tare_environment ENVIRONMENT_FUNCTIONS;
#define FUNCTIONS ENVIRONMENT_FUNCTIONS

/* The rest of the file. CARD: a JSON object. */
#define ENVIRONMENT(NAME, SUMMARY, CARD)                                                                                           \
    _Static_assert(sizeof(struct session) <= 64, "a saved session has at most 64 bytes");                                          \
    const struct rules ENVIRONMENT_RULES = {                                                                                       \
        .size = sizeof(struct session), .card = CARD, .begin = begin, .act = act, .valid = valid, .suggest = suggest};             \
    BUILT_IN(NAME, .kind = TARE_KIND_ENVIRONMENT, .summary = SUMMARY, TARE_PARAMS(PARAMS, P_COUNT), .calls = TARE_CALLS_CONCURRENT)

#endif
