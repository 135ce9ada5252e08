/* Brings a codebook and an encoder together. */
#ifndef TARE_CORE_CLUSTER_MATCH_H
#define TARE_CORE_CLUSTER_MATCH_H

#include "plugin/plugin.h"

/* Refuses an encoder whose embeddings the codebook was not made for, with both identities and their hashes; loads what the encoder learnt
 * from the codebook's corpus into it. encoder NULL: refused when the codebook takes embeddings. name: of the codebook, for messages. */
tare_status match_encoder(struct plugin_instance *codebook, struct plugin_instance *encoder, const char *name, struct err *e);
/* The identity of the encoder that a codebook wants; empty: any. */
tare_status match_identity(struct plugin_instance *codebook, char *text, int64_t capacity, struct err *e);
/* The value of a codebook's parameter "path", or NULL. */
const char *match_codebook_path(const struct plugin_instance *codebook);

#endif
