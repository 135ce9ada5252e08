/* Implements `tare plugin new`: writes a folder with a plugin that builds outside of this tree and
 * passes `tare plugin check`. The templates are in the SDK: TARE_SDK, PREFIX/share/tare/sdk, or the
 * source tree that the program was built from. */
#ifndef TARE_CORE_PLUGIN_NEW_H
#define TARE_CORE_PLUGIN_NEW_H

#include "plugin/plugin.h"

/* Writes the folder, named like the plugin, in the current folder. language: c, cpp or rust.
 * Errors: TARE_E_INVALID when the folder exists, or when tare itself has a plugin of that kind and
 * name. */
tare_status plugin_template(int32_t kind, const char *name, const char *language, struct err *e);

#endif
