/* tare plugin ABI, major 1: descriptors and the entry point. Including this header includes the
 * whole ABI. */
#ifndef TARE_PLUGIN_H
#define TARE_PLUGIN_H

#include "codebook.h"
#include "curriculum.h"
#include "draft/environment.h"
#include "encoder.h"
#include "estimator.h"
#include "limits.h"
#include "objective.h"
#include "verifier.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Kinds of plugins. The host passes over a descriptor of an unknown kind. */
enum {
    TARE_KIND_ESTIMATOR = 1,
    TARE_KIND_VERIFIER,
    TARE_KIND_ENCODER,
    TARE_KIND_CODEBOOK,
    TARE_KIND_OBJECTIVE,
    TARE_KIND_CURRICULUM,
    TARE_KIND_ENVIRONMENT /* draft */
};

/* Threads that may call functions tagged [worker]. The host refuses an unknown number. */
enum {
    TARE_CALLS_SERIAL = 0,              /* one call at a time, possibly from different threads */
    TARE_CALLS_INSTANCE_PER_THREAD = 1, /* the host creates one instance for each thread */
    TARE_CALLS_CONCURRENT = 2           /* one instance, concurrent calls */
};

/* One plugin of the file. All pointers refer to static data. */
typedef struct tare_descriptor {
    uint32_t struct_size;
    int32_t kind;                  /* TARE_KIND_... */
    const char *name;              /* [a-z][a-z0-9_]* */
    const char *version;           /* semantic */
    const char *summary;           /* one line */
    const char *license;           /* SPDX; NULL: not given */
    const char *const *about;      /* key, value, key, value, ..., NULL: "paper", "url", "author", "vendor"; NULL: nothing */
    const tare_param *params;      /* [n_params] */
    const tare_want *wants;        /* [n_wants] */
    uint32_t n_params, param_size; /* param_size: sizeof(tare_param) in the plugin's build */
    uint32_t n_wants, want_size;
    uint32_t calls;        /* TARE_CALLS_... */
    uint32_t flags;        /* 0 */
    uint32_t minor_needed; /* the oldest minor version of a host that gives right results */
    /* The format of the saved state, from 1, and the oldest one that load reads; 0: no state. */
    uint32_t state_version, state_oldest;
    uint32_t reserved;
    const void *functions; /* the kind's function table: tare_estimator, tare_verifier, ... */
    /* Returns what the plugin offers beyond its table, or NULL. NULL: nothing. */
    const void *(*extension)(const char *id);
} tare_descriptor;

/* The plugins of a file. */
typedef struct tare_plugin {
    uint32_t struct_size, flags;
    uint32_t minor_built; /* TARE_ABI_MINOR of the plugin's build */
    uint32_t n_descriptors;
    const tare_descriptor *const *descriptors;
    const char *build; /* "tare-sdk 1.0.0, c, gcc 12.2"; NULL: not given */
} tare_plugin;

/* The one exported symbol. Pure and idempotent: it opens no file, starts no thread and allocates
 * nothing. Returns a static struct, or NULL with error set to refuse the host. */
TARE_EXPORT const tare_plugin *tare_plugin_v1(const tare_host *host, tare_error *error);

#ifdef __cplusplus
}
#endif
#endif
