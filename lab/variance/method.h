/* The measured methods: estimators, and two baselines that know the pool. */
#ifndef TARE_LAB_VARIANCE_METHOD_H
#define TARE_LAB_VARIANCE_METHOD_H

#include "base/fs.h"
#include "estimate/estimate.h"
#include "lab/variance/pool.h"

/* Baselines computed from the pool: the prompt's expected reward, and the constant that minimises E
 * |(R-b) s|^2, which is E R|s|^2 / E |s|^2. Each half of the pool uses those of the other half. */
enum oracle { ORACLE_NONE, ORACLE_MEAN, ORACLE_BEST };
enum state { STATE_NONE, STATE_COLD, STATE_SAVED, STATE_WARMED, STATES };
extern const char *const STATE_NAMES[STATES];

struct method {
    const char *label; /* as the user named it */
    enum oracle oracle;
    const struct plugin *plugin; /* of an estimator */
    const struct config_param *settings;
    bool has_state;
};
struct left_out {
    const char *name;
    char why[160];
};
struct methods {
    struct method method[VARIANCE_METHODS + 2];
    struct left_out left_out[VARIANCE_METHODS];
    int64_t n, n_left_out;
};

/* Finds the estimators of the options, or all built-in ones, and adds the two baselines. Estimators
 * that cannot be measured go to left_out with a reason; if they were named explicitly,
 * TARE_E_CONFIG. Texts are in the arena. */
tare_status variance_methods_find(const struct config *c, const struct variance_options *o, struct arena *a, struct methods *out,
                                  struct err *e);

/* Everything needed to open an estimator. */
struct method_place {
    const struct config *config;
    int64_t n_clusters;
    const void *saved; /* the run's estimator state at the checkpoint; NULL: none */
    int64_t n_saved;
    const char *where; /* the checkpoint, for messages */
};
/* Returns true if the checkpoint's state belongs to this method. */
bool method_is_saved(const struct method *m, const struct method_place *place);
/* Opens the estimator, and loads its saved state if `state` is STATE_SAVED. */
tare_status method_open(const struct method *m, const struct method_place *place, enum state state, struct estimator **out,
                        struct err *e);

#endif
