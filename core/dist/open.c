#include "dist/comm.h"

tare_status comm_open(int64_t ranks, struct comm *out, struct err *e)
{
    if (ranks > 1) FAIL(e, TARE_E_CONFIG, "dist.ranks = %lld: this build runs one rank only; set dist.ranks = 1", (long long)ranks);
    return comm_self(out, e);
}
