/* Prompts in, sampled completions out: lines of JSON as `tare generate --help` has them. A completion depends on the model, the prompt, its id and
 * the seed, not on the lines around it. */
#ifndef TARE_CORE_INFER_GENERATE_H
#define TARE_CORE_INFER_GENERATE_H

#include "base/json.h"
#include "infer/model.h"

struct generator;

/* Where lines go: each with its line end; end (or NULL) after those that were sampled together. */
struct generator_output {
    void *ctx;
    tare_status (*line)(void *ctx, const struct str *line, struct err *e);
    tare_status (*end)(void *ctx, struct err *e);
};
struct generator_stats {
    double seconds; /* of sampling */
    struct sampler_stats sampler;
};

/* m is borrowed, with its settings as they are now. How often an id came is counted from here on. */
tare_status generator_new(struct infer *m, const struct generator_output *output, struct generator **out, struct err *e);
/* Every line of in is answered; name: for messages. What was read before a line that cannot be answered is. */
tare_status generator_read(struct generator *g, FILE *in, const char *name, struct err *e);
struct generator_stats generator_stats(const struct generator *g);
void generator_free(struct generator *g); /* NULL: nothing */

#endif
