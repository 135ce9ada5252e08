/* Embeddings of many texts. The texts are divided into small batches of similar length, which run
 * on the pool if the encoder allows it. A text's embedding does not depend on the others in its
 * batch, so neither order nor threads change the result. */
#ifndef TARE_CORE_CLUSTER_ENCODE_H
#define TARE_CORE_CLUSTER_ENCODE_H

#include "base/pool.h"
#include "plugin/plugin.h"

struct encoding {
    struct plugin_instance *encoder;
    const tare_text *texts; /* [n] */
    int64_t n;
    struct pool *pool; /* NULL: the calling thread alone */
};

/* out: [n, D], D = encoder->sizes.dim. Every number is finite on success. */
tare_status encode_texts(const struct encoding *what, float *out, struct err *e);

/* encode_texts with a cache: folder/embeddings-HASH.bin, where HASH covers the encoder (identity
 * and fitted state) and all texts. A damaged file, or one of another size, is computed again and
 * replaced. folder NULL: no cache. hit may be NULL. */
tare_status encode_cached(const struct encoding *what, const char *folder, float *out, bool *hit, struct err *e);

/* XXH3 over the sizes and bytes of the texts, in order. */
uint64_t encode_hash_texts(const tare_text *texts, int64_t n);

#endif
