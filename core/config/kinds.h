/* The kinds of plugins. Every list of kinds in the engine is made from PLUGIN_KINDS, so a new kind
 * is one line here, its function table in sdk/include/tare, its members in plugin/functions.c, and
 * the calls that open it.
 *
 * KIND(CONSTANT, NAME, KEY, FOLDER, HEADING):
 *   CONSTANT   TARE_KIND_CONSTANT is the kind in a descriptor; lines are in the order of its values
 *   NAME       in messages and in `tare plugin new NAME`; tare_NAME is the function table, and
 *              [NAME.PLUGIN] has the parameters of a plugin of this kind
 *   KEY        NAME.KEY chooses the plugin, or several of them
 *   FOLDER     contains the built-in plugins of the kind
 *   HEADING    the heading in docs/plugins.md
 *
 * Two kinds may have the same folder; they are neighbours then. */
#ifndef TARE_CORE_CONFIG_KINDS_H
#define TARE_CORE_CONFIG_KINDS_H

#include "config/config.h"

#include <tare/plugin.h>

/* clang-format off */
#define PLUGIN_KINDS(KIND)                                                              \
    KIND(ESTIMATOR,   estimator,   plugin,  "estimators",   "Estimators")   \
    KIND(VERIFIER,    verifier,    plugins, "verifiers",    "Verifiers")    \
    KIND(ENCODER,     encoder,     plugin,  "clusterers",   "Encoders")     \
    KIND(CODEBOOK,    codebook,    plugin,  "clusterers",   "Codebooks")    \
    KIND(OBJECTIVE,   objective,   plugin,  "objectives",   "Objectives")   \
    KIND(CURRICULUM,  curriculum,  plugin,  "curricula",    "Curricula")    \
    KIND(ENVIRONMENT, environment, plugin,  "environments", "Environments")

#define PLUGIN_KIND_ONE(...) + 1
enum { PLUGIN_FIRST_KIND = 1, PLUGIN_LAST_KIND = 0 PLUGIN_KINDS(PLUGIN_KIND_ONE) };
/* clang-format on */

struct config_kind {
    const char *name, *key, *folder, *heading; /* the columns of PLUGIN_KINDS */
    size_t choice;                             /* offset of NAME.KEY, a text, in struct config */
};

/* By kind; entry 0 is empty. */
extern const struct config_kind CONFIG_KINDS[PLUGIN_LAST_KIND + 1];

/* Returns the kind whose plugins have their parameters in this section: TARE_KIND_ESTIMATOR for
 * "estimator.bv_blend" and for "estimator" alone. 0 for a section of the engine. */
int32_t config_kind_of_section(const char *section);
/* True for the kinds of which every run has exactly one plugin. */
bool config_kind_is_single(int32_t kind);
/* Returns the value of NAME.KEY. The text is the configuration's. */
const char *config_kind_choice(const struct config *c, int32_t kind);

#endif
