/* Opening encoders and codebooks from words of the command line. */
#ifndef TARE_CLI_CLUSTERERS_H
#define TARE_CLI_CLUSTERERS_H

#include "plugin/plugin.h"

struct cli_plugin {
    struct plugin_instance *instance;
    struct arena arena;
    bool open;
};

/* settings: n strings key=value. Zero-initialise *out and close it in every case. */
tare_status cli_plugin_open(const char *name, int32_t kind, const char *const *settings, int64_t n, struct cli_plugin *out,
                            struct err *e);
/* name: a codebook plugin, or a codebook's file, for which kmeans is opened with path=FILE. */
tare_status cli_codebook_open(const char *name, const char *const *settings, int64_t n, struct cli_plugin *out, struct err *e);
/* The encoder named on the command line. */
struct cli_choice {
    /* NULL: the encoder recorded in the codebook, with its recorded parameters */
    const char *name;
    const char *const *settings; /* [n] key=value */
    int64_t n;
};
/* Opens the encoder of a codebook's embeddings and matches it with the codebook. The settings of
 * the choice are added to recorded parameters (the folder of a model, say). Opens nothing for
 * codebooks that read rows. */
tare_status cli_encoder_for(struct plugin_instance *codebook, const char *codebook_name, const struct cli_choice *choice,
                            struct cli_plugin *out, struct err *e);
void cli_plugin_close(struct cli_plugin *p);

#endif
