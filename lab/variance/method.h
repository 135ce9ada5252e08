/* What is measured: estimators, and two baselines that know the pool. */
#ifndef TARE_LAB_VARIANCE_METHOD_H
#define TARE_LAB_VARIANCE_METHOD_H

#include "base/fs.h"
#include "estimate/estimate.h"
#include "lab/variance/pool.h"

/* Whose baseline is the pool's: the prompt's expected reward, and the constant that makes E |(R-b) s|^2 least, E R|s|^2 / E |s|^2. Each half of the pool
 * takes them from the other half. */
enum oracle { ORACLE_NONE, ORACLE_MEAN, ORACLE_BEST };
enum state { STATE_NONE, STATE_COLD, STATE_SAVED, STATE_WARMED, STATES };
extern const char *const STATE_NAMES[STATES];

struct method {
    const char *label; /* as it was asked for */
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

/* The estimators of the options, else all built-in ones; then the two baselines. Those that cannot be measured are left out with a reason; one that was
 * asked for by name is TARE_E_CONFIG. Texts are in the arena. */
tare_status variance_methods_find(const struct config *c, const struct variance_options *o, struct arena *a, struct methods *out,
                                  struct err *e);

/* Where estimators are opened. */
struct method_place {
    const struct config *config;
    int64_t n_clusters;
    const void *saved; /* the run's estimator state at the checkpoint; NULL: none */
    int64_t n_saved;
    const char *where; /* the checkpoint, for messages */
};
/* Whether the state of the checkpoint is this method's. */
bool method_is_saved(const struct method *m, const struct method_place *place);
/* With its saved state loaded when `state` says so. */
tare_status method_open(const struct method *m, const struct method_place *place, enum state state, struct estimator **out,
                        struct err *e);

#endif
