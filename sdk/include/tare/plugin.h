/* tare plugin ABI, major 1: descriptors and the entry point. Including this header includes the
 * whole ABI. */
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

/* Threads that may call an instance. create, load, apply, fit and destroy are exclusive in every
 * case. */
enum {
    TARE_SINGLE_THREAD = 0,       /* one call at a time, possibly from different threads */
    TARE_INSTANCE_PER_THREAD = 1, /* the host creates one instance for each worker */
    TARE_REENTRANT = 2            /* one instance, concurrent calls */
};

/* One plugin of the file. All pointers refer to static data. */
typedef struct tare_descriptor {
    uint32_t struct_size;
    int32_t kind;
    /* name: [a-z][a-z0-9_]*; version: semantic; all static */
    const char *name, *version, *summary, *license;
    const char *source;       /* the paper and its equations, or NULL */
    const tare_param *params; /* [n_params] */
    /* param_size: sizeof(tare_param) in the plugin's build */
    uint32_t n_params, param_size;
    uint32_t needs, threading;
    /* function table of the kind: tare_estimator, tare_verifier, tare_encoder, tare_codebook,
     * tare_objective or tare_curriculum */
    const void *functions;
} tare_descriptor;

/* The plugins of a file. abi_minor_built: TARE_ABI_MINOR of the plugin's build. abi_minor_needed:
 * the oldest minor version of a host that can run it. */
typedef struct tare_plugin {
    uint32_t struct_size, abi_minor_built, abi_minor_needed, n_descriptors;
    const tare_descriptor *const *descriptors;
} tare_plugin;

/* The one exported symbol. Pure and idempotent: it opens no file, starts no thread and allocates
 * nothing. Returns a static struct, or NULL with error set to refuse the host. */
TARE_EXPORT const tare_plugin *tare_plugin_v1(const tare_host *host, tare_error *error);

#ifdef __cplusplus
}
#endif
#endif
