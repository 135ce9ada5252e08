/* The host extension tare.embed/1: mean-pooled last hidden states of the frozen initial policy, for
 * encoders that need no second model. */
#ifndef TARE_CORE_ENGINE_EMBED_SERVICE_H
#define TARE_CORE_ENGINE_EMBED_SERVICE_H

#include "data/tokenizer.h"
#include "model/model.h"

struct embed_service;
/* Borrows model and tokenizer; the model must keep its initial weights while the service is used.
 * Texts longer than the context are truncated. */
tare_status embed_service_new(struct model *m, const struct tokenizer *t, struct embed_service **out, struct err *e);
const tare_embed_v1 *embed_service_extension(const struct embed_service *s);
void embed_service_free(struct embed_service *s); /* may be NULL */

#endif
