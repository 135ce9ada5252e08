#include "state.h"

#include <string.h>

tare_status state_write(const tare_stream *out, int64_t K, const void *data, int64_t bytes)
{
    const tare_status status = out->write(out->ctx, &K, sizeof K);
    return status ? status : out->write(out->ctx, data, bytes);
}

tare_status state_next(const tare_stream *in, void *data, int64_t n, tare_error *error)
{
    const tare_status status = in->read(in->ctx, data, n);
    return status ? tare_fail(error, status, "the state is cut short") : TARE_OK;
}

tare_status state_read(const tare_host *host, const tare_stream *in, const struct state_entries *of, int64_t bytes, void **fresh,
                       tare_error *error)
{
    int64_t theirs = 0;
    tare_status status = state_next(in, &theirs, sizeof theirs, error);
    if (status) return status;
    if (theirs != of->K)
        return tare_fail(error, TARE_E_VERSION, "the state has %lld %s, this run has %lld", (long long)theirs, of->what,
                         (long long)of->K);
    *fresh = host->alloc(host->ctx, bytes, 64);
    if (!*fresh) return tare_fail(error, TARE_E_NOMEM, "no memory to read the state of %lld %s", (long long)of->K, of->what);
    status = state_next(in, *fresh, bytes, error);
    if (status) host->release(host->ctx, *fresh);
    return status;
}

tare_status state_load(const tare_host *host, const tare_stream *in, const struct state_entries *of, void *into, tare_error *error)
{
    const int64_t bytes = of->K * of->size;
    void *fresh;
    tare_status status = state_read(host, in, of, bytes, &fresh, error);
    if (status) return status;
    for (int64_t k = 0; k < of->K && !status; k++) status = of->check((const char *)fresh + k * of->size, k, error);
    if (!status) memcpy(into, fresh, (size_t)bytes);
    host->release(host->ctx, fresh);
    return status;
}

tare_status state_numbers(const tare_stream *out, const char *before, const char *name, const double *x, int64_t n, int64_t stride)
{
    tare_status status = tare_print(out, "%s\"%s\":[", before, name);
    for (int64_t i = 0; i < n && !status; i++) status = tare_print(out, "%s%.17g", i ? "," : "", x[i * stride]);
    return status ? status : tare_print(out, "]");
}
