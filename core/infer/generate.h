/* Prompts in, sampled completions out, as the lines of JSON that `tare generate --help` describes.
 * A completion depends on the model, the prompt, its id and the seed, not on the other lines. */
#ifndef TARE_CORE_INFER_GENERATE_H
#define TARE_CORE_INFER_GENERATE_H

#include "base/json.h"
#include "infer/model.h"

struct generator;

/* Receives the lines, each with its line end. `end`, which may be NULL, is called after the lines
 * that were sampled together. */
struct generator_output {
    void *ctx;
    tare_status (*line)(void *ctx, const struct str *line, struct err *e);
    tare_status (*end)(void *ctx, struct err *e);
};
struct generator_stats {
    double seconds; /* in the sampler */
    struct sampler_stats sampler;
};

/* Borrows m and snapshots its sampling settings. The counts of occurrences start at zero. */
tare_status generator_new(struct infer *m, const struct generator_output *output, struct generator **out, struct err *e);
/* Answers every line of in; name is used in messages. Lines before one that cannot be answered are
 * answered. */
tare_status generator_read(struct generator *g, FILE *in, const char *name, struct err *e);
struct generator_stats generator_stats(const struct generator *g);
void generator_free(struct generator *g); /* may be NULL */

#endif
