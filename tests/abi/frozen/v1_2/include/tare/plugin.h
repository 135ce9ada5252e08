/* tare plugin ABI, major 1: descriptors and the entry point. Including this header includes the whole ABI. */
#ifndef TARE_PLUGIN_H
#define TARE_PLUGIN_H

#include "base.h"
#include "clusterer.h"
#include "curriculum.h"
#include "estimator.h"
#include "objective.h"
#include "verifier.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    TARE_ESTIMATOR = 1,
    TARE_VERIFIER,
    TARE_ENCODER,
    TARE_CODEBOOK,
    TARE_OBJECTIVE /* since minor 2 */,
    TARE_CURRICULUM /* since minor 2 */
};

/* Who may call an instance at the same time. create, load, apply, fit and destroy are exclusive in every case. */
enum {
    TARE_SINGLE_THREAD = 0,       /* one call at a time, possibly from different threads */
    TARE_INSTANCE_PER_THREAD = 1, /* the host makes one instance for each worker */
    TARE_REENTRANT = 2            /* one instance, concurrent calls */
};

typedef struct tare_descriptor {
    uint32_t struct_size;
    int32_t kind;
    const char *name, *version, *summary, *license; /* name: [a-z][a-z0-9_]*; version: semantic; all static */
    const char *source;                             /* the paper and its equations, or NULL */
    const tare_param *params;                       /* [n_params] */
    uint32_t n_params, param_size;                  /* param_size: sizeof(tare_param) in the plugin's build */
    uint32_t needs, threading;
    const void *functions; /* tare_estimator, tare_verifier, tare_encoder, tare_codebook, tare_objective or tare_curriculum */
} tare_descriptor;

typedef struct tare_plugin {
    uint32_t struct_size, abi_minor_built, abi_minor_needed, n_descriptors;
    const tare_descriptor *const *descriptors;
} tare_plugin;

/* The one exported symbol. Pure and idempotent: no file, no thread, no allocation that is not static. NULL with error set:
 * refused. */
TARE_EXPORT const tare_plugin *tare_plugin_v1(const tare_host *host, tare_error *error);

#ifdef __cplusplus
}
#endif
#endif
