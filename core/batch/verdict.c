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

static const char *const FINISHES[] = {[TARE_FINISH_STOP] = "stop", [TARE_FINISH_LENGTH] = "length", [TARE_FINISH_ENDED] = "ended"};

const char *batch_finish_name(int32_t finish)
{
    return FINISHES[finish >= TARE_FINISH_NONE && finish <= TARE_FINISH_ENDED ? finish : TARE_FINISH_LENGTH];
}

int32_t batch_finish_code(const char *name)
{
    for (int32_t finish = TARE_FINISH_STOP; name && finish <= TARE_FINISH_ENDED; finish++)
        if (!strcmp(name, FINISHES[finish])) return finish;
    return TARE_FINISH_NONE;
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
