#include "batch/verdict.h"

#include <stddef.h>
#include <string.h>

const char *verdict_name(int32_t code)
{
    static const char *const names[] = {NULL, "correct", "wrong", "no_answer", "unparsable", "timeout", "crashed", "partial"};
    return code >= TARE_VERDICT_CORRECT && code <= TARE_VERDICT_PARTIAL ? names[code] : NULL;
}

int32_t verdict_code(const char *name)
{
    if (name)
        for (int32_t code = TARE_VERDICT_CORRECT; code <= TARE_VERDICT_PARTIAL; code++)
            if (!strcmp(name, verdict_name(code))) return code;
    return 0;
}

const char *batch_finish_name(int32_t finish)
{
    static const char *const names[] = {"stop", "length"};
    return names[finish == TARE_FINISH_LENGTH];
}

int32_t batch_finish_code(const char *name)
{
    if (name)
        for (int32_t finish = TARE_FINISH_STOP; finish <= TARE_FINISH_LENGTH; finish++)
            if (!strcmp(name, batch_finish_name(finish))) return finish;
    return -1;
}

static const char *const FATES[] = {[TARE_FATE_KEPT] = "kept", [TARE_FATE_LEFT_OUT] = "left_out", [TARE_FATE_COUNTED] = "counted"};

const char *batch_fate_name(int32_t fate)
{
    return FATES[fate >= TARE_FATE_KEPT && fate <= TARE_FATE_COUNTED ? fate : TARE_FATE_KEPT];
}

int32_t batch_fate_code(const char *name)
{
    for (int32_t fate = TARE_FATE_KEPT; name && fate <= TARE_FATE_COUNTED; fate++)
        if (!strcmp(name, FATES[fate])) return fate;
    return -1;
}
