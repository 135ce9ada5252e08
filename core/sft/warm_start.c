/* model.warm_start names a configuration for `tare sft` that makes model.path when the folder is absent; that one may name another. The
 * seed, device, determinism and threads of the run go with it. One that was interrupted goes on from its last checkpoint. */
#include "base/fs.h"
#include "base/log.h"
#include "sft/sft.h"

#include <string.h>

tare_status warm_start(const struct config *c, struct err *e)
{
    if (fs_is_dir(c->model.path) || !c->model.warm_start[0]) return TARE_OK;
    char file[FS_PATH], seed[64], threads[64], device[64], deterministic[64];
    TRY(fs_join(file, c->dir ? c->dir : ".", c->model.warm_start, e));
    snprintf(seed, sizeof seed, "run.seed=%lld", (long long)c->run.seed);
    snprintf(threads, sizeof threads, "run.threads=%lld", (long long)c->run.threads);
    snprintf(device, sizeof device, "run.device=%s", c->run.device);
    snprintf(deterministic, sizeof deterministic, "run.deterministic=%s", c->run.deterministic);
    const char *overrides[] = {seed, threads, device, deterministic};
    struct config child;
    log_info("%s is not there: making it by %s", c->model.path, file);
    TRY(config_load(&child, file, overrides, 4, e));
    tare_status status = TARE_OK;
    if (strcmp(child.sft.out, c->model.path))
        status = err_set(e, TARE_E_CONFIG, __FILE__, __LINE__, "%s: sft.out = %s, but %s wants model.path = %s; make them the same",
                         file, child.sft.out, c->file ? c->file : "the command line", c->model.path);
    else
        status = sft_run(&child, SFT_GO_ON, e);
    config_free(&child);
    return status;
}
