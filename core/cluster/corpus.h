/* Texts to train a codebook on: JSONL with "text" or "question" in each line. */
#ifndef TARE_CORE_CLUSTER_CORPUS_H
#define TARE_CORE_CLUSTER_CORPUS_H

#include "base/arena.h"

#include <stdio.h>

struct corpus {
    tare_text *texts; /* [n] in the arena */
    int64_t n, capacity;
    struct arena arena;
};

/* Reads to the end of f; name is used in messages. An empty corpus, a line without a text, and an
 * empty text are errors. On failure there is nothing to free. */
tare_status corpus_read(FILE *f, const char *name, struct corpus *out, struct err *e);
tare_status corpus_open(const char *path, struct corpus *out, struct err *e);
void corpus_free(struct corpus *c);

#endif
