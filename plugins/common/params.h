/* Rows of a parameter table, for every kind of plugin. */
#ifndef PARAMS_H
#define PARAMS_H

#include <tare/sdk.h>

/* DEFAULT is a text, as in the INI file. */
#define PARAM_FLOAT(KEY, DEFAULT, DOC, MIN, MAX, FLAGS)                                                                            \
    {                                                                                                                              \
        KEY, DEFAULT, DOC, NULL, NULL, MIN, MAX, TARE_FLOAT, FLAGS                                                                 \
    }
#define PARAM_INT(KEY, DEFAULT, DOC, MIN, MAX)                                                                                     \
    {                                                                                                                              \
        KEY, DEFAULT, DOC, NULL, NULL, MIN, MAX, TARE_INT, 0                                                                       \
    }
#define PARAM_BOOL(KEY, DEFAULT, DOC)                                                                                              \
    {                                                                                                                              \
        KEY, DEFAULT, DOC, NULL, NULL, 0, 0, TARE_BOOL, 0                                                                          \
    }
#define PARAM_CHOICE(KEY, DEFAULT, DOC, CHOICES)                                                                                   \
    {                                                                                                                              \
        KEY, DEFAULT, DOC, NULL, CHOICES, 0, 0, TARE_CHOICE, 0                                                                     \
    }

#endif
