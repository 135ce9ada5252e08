#include "plugin/plugin.h"

const struct plugin_builtin PLUGIN_BUILTINS[] = {
#include "builtins.inc"
    {NULL, NULL, NULL, false},
};
