/* The end of a file with one built-in plugin, whose function table is FUNCTIONS. The arguments
 * after the name are its other members of tare_descriptor: kind, summary, about, parameters, wants,
 * calls. */
#ifndef BUILT_IN_H
#define BUILT_IN_H

#include <tare/sdk.h>

#define BUILT_IN_DESCRIPTOR(NAME, ...)                                                                                             \
    static const tare_descriptor DESCRIPTOR = {.struct_size = sizeof DESCRIPTOR,                                                   \
                                               .name = NAME,                                                                       \
                                               .version = "1.0.0",                                                                 \
                                               .license = "Apache-2.0",                                                            \
                                               .functions = &FUNCTIONS,                                                            \
                                               __VA_ARGS__};
#define BUILT_IN(NAME, ...)                                                                                                        \
    BUILT_IN_DESCRIPTOR(NAME, __VA_ARGS__)                                                                                         \
    TARE_PLUGIN_ENTRY(&DESCRIPTOR)

/* Values of tare_descriptor.about. */
#define ABOUT(PAPER) ((const char *const[]){"paper", PAPER, NULL})

#endif
