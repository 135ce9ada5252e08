/* Answers to a client as JSON. All functions append to out. */
#ifndef TARE_SERVE_ANSWER_H
#define TARE_SERVE_ANSWER_H

#include "serve/job.h"

tare_status answer_whole(const struct job *job, struct str *out, struct err *e);
/* Events of a stream: an event with the unsent part of choice i, if any; at the end the token
 * counts if requested, and [DONE]. */
tare_status answer_chunk(struct job *job, int64_t i, struct str *out, struct err *e);
tare_status answer_end(const struct job *job, struct str *out, struct err *e);
/* Adds {"error": {...}}. */
tare_status answer_refusal(const struct refusal *no, struct str *out, struct err *e);
tare_status answer_models(const struct server *s, struct str *out, struct err *e);
tare_status answer_model(const struct server *s, const struct served *m, struct str *out, struct err *e);

#endif
