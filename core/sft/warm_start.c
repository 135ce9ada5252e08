/* model.warm_start names a configuration for `tare sft` that makes model.path if the folder is
 * missing; that configuration may name another. It receives the run's seed, device, determinism and
 * threads. An interrupted one continues from its last checkpoint. */
#include "base/fs.h"
#include "base/log.h"
#include "base/signals.h"
#include "observe/run_lock.h"
#include "sft/internal.h"

#include <string.h>
#include <time.h>

/* Loads the configuration that makes c's model, with the keys taken from c. file: FS_PATH bytes,
 * receives its name. */
tare_status warm_start_config(const struct config *c, char *file, struct config *child, struct err *e)
{
    char seed[64], threads[64], device[64], deterministic[64], folder[FS_PATH + 32];
    TRY(fs_join(file, c->dir ? c->dir : ".", c->model.warm_start, e));
    snprintf(seed, sizeof seed, "run.seed=%lld", (long long)c->run.seed);
    snprintf(threads, sizeof threads, "run.threads=%lld", (long long)c->run.threads);
    snprintf(device, sizeof device, "run.device=%s", config_chosen(c, "run", "device"));
    snprintf(deterministic, sizeof deterministic, "run.deterministic=%s", config_chosen(c, "run", "deterministic"));
    snprintf(folder, sizeof folder, "run.paths_from=%s", c->base ? c->base : "");
    const char *overrides[] = {seed, threads, device, deterministic, folder};
    TRY(config_load(child, file, overrides, c->base ? 5 : 4, e));
    if (!strcmp(child->sft.out, c->model.path)) return TARE_OK;
    const tare_status status =
        err_set(e, TARE_E_CONFIG, __FILE__, __LINE__, "%s: sft.out = %s, but %s wants model.path = %s; make them equal", file,
                child->sft.out, c->file ? c->file : "the command line", c->model.path);
    config_free(child);
    return status;
}

bool warm_start_due(const struct config *c)
{
    return c->model.warm_start[0] && !fs_is_dir(c->model.path);
}

/* Refuses warm starts that need each other, which would wait forever: no model of the chain may be
 * needed again further on. */
enum { CHAIN = 8 };
static tare_status check_circle(const struct config *c, const struct config *first, int depth, struct err *e)
{
    char file[FS_PATH];
    if (!warm_start_due(c)) return TARE_OK;
    OWNED(config_free) struct config child = {0};
    TRY(warm_start_config(c, file, &child, e));
    if (warm_start_due(&child) && !strcmp(child.model.path, first->model.path))
        FAIL(
            e, TARE_E_CONFIG,
            "%s: model.warm_start leads back to %s, which is to be made, so each would wait for the other; let one of them start from an existing model, or from model.init",
            file, first->model.path);
    if (depth == CHAIN)
        FAIL(e, TARE_E_CONFIG, "%s: model.warm_start: more than %d chained configurations, or a cycle", file, CHAIN);
    return check_circle(&child, first, depth + 1, e);
}

/* Waits while another run makes the same model. */
static tare_status wait_for_other(const struct config *c, struct err *e)
{
    char folder[FS_PATH + 16];
    bool said = false;
    snprintf(folder, sizeof folder, "%s.training", c->model.path);
    while (!fs_is_dir(c->model.path) && run_lock_is_held(folder)) {
        if (!said) log_info("%s is being made by another process: waiting for it", c->model.path);
        said = true;
        if (*signals_flag()) FAIL(e, TARE_E_CANCELLED, "interrupted while another process makes %s", c->model.path);
        nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    }
    return TARE_OK;
}

tare_status warm_start(const struct config *c, struct err *e)
{
    char file[FS_PATH];
    struct config child;
    if (!warm_start_due(c)) {
        if (c->model.warm_start[0]) sft_clear_ended(c->model.path);
        return TARE_OK;
    }
    TRY(check_circle(c, c, 1, e));
    TRY(warm_start_config(c, file, &child, e));
    tare_status status = TARE_E_STATE; /* another process took it since the check */
    while (status == TARE_E_STATE) {
        status = wait_for_other(c, e);
        if (status || fs_is_dir(c->model.path)) break;
        log_info("%s does not exist: making it with %s", c->model.path, file);
        status = sft_run(&child, SFT_GO_ON, NULL, e);
    }
    config_free(&child);
    return status;
}
