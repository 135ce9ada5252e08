/* Checks before a run is resumed: its configuration against the one it was started with, and the
 * data that would be lost if no checkpoint can be used. */
#include "loop/resume_check.h"

#include "base/fs.h"
#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "loop/run.h"
#include "observe/run_data.h"

#include <stdio.h>

tare_status resume_check(const struct config *c, bool allow_change, struct err *e)
{
    char advice[STR_SHELL + 120], word[STR_SHELL];
    snprintf(advice, sizeof advice,
             "`tare train %s --resume` keeps the run's values, --allow-change applies the new ones from here on",
             str_shell(word, c->run.dir));
    return config_check_resume(&(struct config_resume){.run = c->run.dir, .advice = advice, .allow_change = allow_change}, c, e);
}

tare_status resume_lost(const char *run_dir, struct err *e)
{
    int64_t checkpoints, step = 0;
    TRY(checkpoint_count(run_dir, &checkpoints, e));
    if (!checkpoints) {
        log_info("%s has no checkpoint yet: starting from the beginning", run_dir);
        return TARE_OK;
    }
    TRY(run_last_step(run_dir, &step, e));
    FAIL(
        e, TARE_E_CORRUPT,
        "%s: none of its %lld checkpoints can be used (see the warnings above). Starting over would delete them and the metrics and rollouts of %lld steps, so nothing was changed; restore the damaged files, or start another run with run.dir=FOLDER",
        run_dir, (long long)checkpoints, (long long)(step > 0 ? step : 0));
}
