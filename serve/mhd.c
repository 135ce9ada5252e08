#include "serve/mhd.h"

#include "needs.h"

#include <dlfcn.h>
#include <string.h>

tare_status mhd_open(const struct mhd **out, struct err *e)
{
    static struct mhd table;
    void *library = dlopen("libmicrohttpd.so.12", RTLD_NOW | RTLD_LOCAL), *symbol;
    if (!library)
        FAIL(e, TARE_E_UNSUPPORTED, "tare serve needs libmicrohttpd, which cannot be loaded (%s); apt-get install " NEEDS_SERVE,
             dlerror());
#define MHD_LOAD(NAME)                                                                                                             \
    symbol = dlsym(library, "MHD_" #NAME);                                                                                         \
    if (!symbol) FAIL(e, TARE_E_VERSION, "libmicrohttpd lacks MHD_" #NAME "; it is too old for tare serve");                       \
    memcpy(&table.NAME, &symbol, sizeof symbol);
    MHD_CALLS(MHD_LOAD)
#undef MHD_LOAD
    *out = &table;
    return TARE_OK;
}
