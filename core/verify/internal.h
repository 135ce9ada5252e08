/* What the files of core/verify share. */
#ifndef TARE_CORE_VERIFY_INTERNAL_H
#define TARE_CORE_VERIFY_INTERNAL_H

#include "base/pool.h"
#include "verify/verify.h"

enum { VERIFY_MAX = 16 }; /* verifiers of one run */

struct verifier {
    const struct plugin *plugin;
    double weight;
    int64_t n_instances;               /* 1, or one for each worker */
    struct plugin_instance **instance; /* [n_instances] */
};

struct verify {
    struct verify_options options;
    struct pool *pool;
    struct verifier verifiers[VERIFY_MAX];
    int64_t n_verifiers;
};

/* Judges item with verifier c as worker `thread`. A verdict, or an error that names no row yet. */
tare_status verify_call(const struct verify *v, int64_t c, int thread, const struct verify_item *item, tare_verdict *verdict,
                        struct err *e);

#endif
