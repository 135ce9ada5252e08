/* Turns the prompts or messages of a request into token ids. */
#ifndef TARE_SERVE_PROMPT_H
#define TARE_SERVE_PROMPT_H

#include "serve/request.h"

/* Encodes prompt (a text, a list of texts, a list of token ids, or a list of such lists), or
 * messages through the model's chat template. Fills ids, n_prompts and begin. */
tare_status prompt_of_request(struct request *r, struct refusal *no);

#endif
