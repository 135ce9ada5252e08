/* The kinds of plugins. Every list of kinds in the engine is made from PLUGIN_KINDS, so a new kind
 * is one line here, its function table in sdk/include/tare, its members in plugin/validate.c, and
 * the calls that open it.
 *
 * KIND(CONSTANT, NAME, SECTION, KEY, FOLDER, HEADING):
 *   CONSTANT   TARE_CONSTANT is the kind in a descriptor; lines are in the order of its values
 *   NAME       in messages and in `tare plugin new NAME`; tare_NAME is the function table
 *   SECTION    [SECTION.PLUGIN] has the parameters of a plugin of this kind
 *   KEY        SECTION.KEY chooses the plugin, or several of them
 *   FOLDER     contains the built-in plugins of the kind
 *   HEADING    the heading in docs/plugins.md
 *
 * Two kinds may have the same section and folder; they are neighbours then. */
#ifndef TARE_CORE_CONFIG_KINDS_H
#define TARE_CORE_CONFIG_KINDS_H

#include "config/config.h"

#include <tare/plugin.h>

/* clang-format off */
#define PLUGIN_KINDS(KIND)                                                              \
    KIND(ESTIMATOR,  estimator,  estimator,  plugin,   "estimators", "Estimators")      \
    KIND(VERIFIER,   verifier,   verifier,   plugins,  "verifiers",  "Verifiers")       \
    KIND(ENCODER,    encoder,    clusterer,  encoder,  "clusterers", "Encoders")        \
    KIND(CODEBOOK,   codebook,   clusterer,  codebook, "clusterers", "Codebooks")       \
    KIND(OBJECTIVE,  objective,  objective,  plugin,   "objectives", "Objectives")      \
    KIND(CURRICULUM, curriculum, curriculum, plugin,   "curricula",  "Curricula")

#define PLUGIN_KIND_ONE(...) + 1
enum { PLUGIN_FIRST_KIND = 1, PLUGIN_LAST_KIND = 0 PLUGIN_KINDS(PLUGIN_KIND_ONE) };
/* clang-format on */

struct config_kind {
    const char *name, *section, *key, *folder, *heading; /* the columns of PLUGIN_KINDS */
    size_t choice;                                       /* offset of SECTION.KEY, a text, in struct config */
};

/* By kind; entry 0 is empty. */
extern const struct config_kind CONFIG_KINDS[PLUGIN_LAST_KIND + 1];

/* Returns the first kind whose plugins have their parameters in this section: TARE_ESTIMATOR for
 * "estimator.bv_blend" and for "estimator" alone. "encoder" and "codebook" are other names for the
 * section "clusterer". 0 for a section of the engine. */
int32_t config_kind_of_section(const char *section);
/* True where the key is "plugin", which names exactly one plugin. */
bool config_kind_is_single(int32_t kind);
/* Returns the value of SECTION.KEY. The text is the configuration's. */
const char *config_kind_choice(const struct config *c, int32_t kind);

#endif
