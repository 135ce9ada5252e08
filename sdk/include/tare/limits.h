/* tare plugin ABI, major 1: the host's limits. A later host may raise them. */
#ifndef TARE_LIMITS_H
#define TARE_LIMITS_H

enum {
    TARE_LIMIT_DESCRIPTORS = 64, /* in a file */
    TARE_LIMIT_PARAMS = 256,     /* of a plugin */
    TARE_LIMIT_WANTS = 64,       /* of a plugin */
    TARE_LIMIT_CHOICES = 256,    /* of a parameter */
    TARE_LIMIT_OLD_KEYS = 32,    /* of a parameter */
    TARE_LIMIT_ABOUT = 32,       /* pairs of tare_descriptor.about */
    TARE_LIMIT_NAME = 63,        /* bytes of a name */
    TARE_LIMIT_METRIC = 63,      /* bytes of a metric's name */
    TARE_LIMIT_VERIFIERS = 16,   /* of a run */
    TARE_LIMIT_SEGMENTS = 256,   /* of a completion */
    TARE_LIMIT_EXTRACTED = 512,  /* bytes kept of an extracted answer */
    TARE_LIMIT_NOTE = 512        /* bytes kept of a verdict's note */
};

#endif
