#include "batch/verdict.h"

#include <stddef.h>
#include <string.h>

const char *verdict_name(int32_t code)
{
    static const char *const names[] = {NULL, "correct", "wrong", "no_answer", "unparsable", "timeout", "crashed", "partial"};
    return code >= TARE_CORRECT && code <= TARE_PARTIAL ? names[code] : NULL;
}

int32_t verdict_code(const char *name)
{
    for (int32_t code = TARE_CORRECT; name && code <= TARE_PARTIAL; code++)
        if (!strcmp(name, verdict_name(code))) return code;
    return 0;
}

const char *finish_name(int32_t finish)
{
    static const char *const names[] = {"stop", "length"};
    return names[finish == TARE_FINISH_LENGTH];
}

int32_t finish_code(const char *name)
{
    for (int32_t finish = TARE_FINISH_STOP; name && finish <= TARE_FINISH_LENGTH; finish++)
        if (!strcmp(name, finish_name(finish))) return finish;
    return -1;
}
