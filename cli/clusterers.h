/* Opening encoders and codebooks from words of the command line. */
#ifndef TARE_CLI_CLUSTERERS_H
#define TARE_CLI_CLUSTERERS_H

#include "plugin/plugin.h"

struct cli_plugin {
    struct plugin_instance *instance;
    struct arena arena;
    bool open;
};

/* settings: n strings key=value. Zero-initialise *out; close it in every case. */
tare_status cli_plugin_open(const char *name, int32_t kind, const char *const *settings, int64_t n, struct cli_plugin *out,
                            struct err *e);
/* name: a codebook plugin, or a codebook's file (then kmeans with path=FILE). */
tare_status cli_codebook_open(const char *name, const char *const *settings, int64_t n, struct cli_plugin *out, struct err *e);
/* The encoder that a codebook's embeddings come from: the choice, or, when its name is NULL, the one its identity names with the
 * parameters that stand there (settings are added: a model's folder, say). Nothing is opened for codebooks of rows. The encoder is matched
 * with the codebook. */
struct cli_choice {
    const char *name;
    const char *const *settings; /* [n] key=value */
    int64_t n;
};
tare_status cli_encoder_for(struct plugin_instance *codebook, const char *codebook_name, const struct cli_choice *choice,
                            struct cli_plugin *out, struct err *e);
void cli_plugin_close(struct cli_plugin *p);

#endif
