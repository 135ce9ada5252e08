/* The columns that an objective gets, from its wants (plugin/columns.h). */
#ifndef TARE_CORE_UPDATE_COLUMNS_H
#define TARE_CORE_UPDATE_COLUMNS_H

#include "batch/batch.h"
#include "plugin/plugin.h"

/* The tokens of a call. Arrays [T] are of the whole batch, arrays [n] of these tokens. */
struct loss_tokens {
    const struct batch *b;
    const int64_t *token; /* [n] indices into b->ids */
    int64_t n;
    const int64_t *owner; /* [T] rollout of a token */
    const float *sampled; /* [T]; NULL: not recorded */
    const float *kl;      /* [n]; NULL: not computed */
    bool before;          /* in annotate: there is no kl yet */
};
/* Writes tare_tokens.column: [n_wants], in the arena. */
tare_status update_columns(const struct plugin_instance *i, const struct loss_tokens *x, struct arena *a, const tare_column **out,
                           struct err *e);

#endif
