#include "cli/arguments.h"

#include <string.h>

bool arguments_read(int argc, char **argv, struct arguments *out)
{
    *out = (struct arguments){0};
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--help")) return out->help = true;
        if (!strcmp(argv[i], "--resume"))
            out->resume = true;
        else if (!out->file && !strchr(argv[i], '='))
            out->file = argv[i];
        else if (argv[i][0] != '-' && strchr(argv[i], '=') && out->n < 256)
            out->overrides[out->n++] = argv[i];
        else
            return false;
    }
    return out->file != NULL;
}
