/* From what a request says to the ids that the model is given. */
#ifndef TARE_SERVE_PROMPT_H
#define TARE_SERVE_PROMPT_H

#include "serve/request.h"

/* prompt: a text, a list of texts, a list of token ids, or a list of such lists. messages: through the model's chat template. Fills ids, n_prompts,
 * begin. */
tare_status prompt_of_request(struct request *r, struct refusal *no);

#endif
