/* The end of a file with one built-in plugin, whose function table is FUNCTIONS. The arguments
 * after the name are its other members of tare_descriptor: kind, summary, source, parameters,
 * needs, threading. */
#ifndef BUILT_IN_H
#define BUILT_IN_H

#include <tare/sdk.h>

#define BUILT_IN_DESCRIPTOR(NAME, ...)                                                                                             \
    static const tare_descriptor DESCRIPTOR = {.struct_size = sizeof DESCRIPTOR,                                                   \
                                               .name = NAME,                                                                       \
                                               .version = "1.0.0",                                                                 \
                                               .license = "Apache-2.0",                                                            \
                                               .param_size = sizeof(tare_param),                                                   \
                                               .functions = &FUNCTIONS,                                                            \
                                               __VA_ARGS__};
#define BUILT_IN(NAME, ...) BUILT_IN_SINCE(0, NAME, __VA_ARGS__)
/* MINOR: the oldest minor version of a host that can run it. */
#define BUILT_IN_SINCE(MINOR, NAME, ...)                                                                                           \
    BUILT_IN_DESCRIPTOR(NAME, __VA_ARGS__)                                                                                         \
    TARE_PLUGIN_ENTRY_SINCE(DESCRIPTOR, MINOR)

#endif
