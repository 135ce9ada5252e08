/* Matches a codebook with its encoder. */
#ifndef TARE_CORE_CLUSTER_MATCH_H
#define TARE_CORE_CLUSTER_MATCH_H

#include "plugin/plugin.h"

/* Refuses an encoder that the codebook was not made for, with both identities and hashes. Loads the
 * encoder's state fitted to the codebook's corpus. encoder NULL is refused if the codebook needs
 * embeddings. name: the codebook's name, for messages. */
tare_status match_encoder(struct plugin_instance *codebook, struct plugin_instance *encoder, const char *name, struct err *e);
/* Appends the identity of the encoder that a codebook needs; nothing: any. */
tare_status match_identity(const struct plugin_instance *codebook, struct str *out, struct err *e);
/* Returns the index of a codebook's parameter for a file that the run trains
 * (TARE_PARAM_RUN_FILE), or -1. */
int64_t match_run_file(const struct plugin *codebook);
/* Returns the value of that parameter, or NULL. */
const char *match_codebook_path(const struct plugin_instance *codebook);

#endif
