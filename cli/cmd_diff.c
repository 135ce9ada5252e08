#include "base/json.h"
#include "base/log.h"
#include "cli/cli.h"
#include "lab/compare/compare.h"

#include <limits.h>
#include <string.h>

const char diff_usage[] =
    "usage: tare diff RUN RUN [--metric NAME] [--json]\n"
    "Compares two runs bit by bit. It prints the keys that differ; then the first step, rollout, token, reward, baseline, scale,\n"
    "confidence, advantage, metric, tensor and checkpoint section that differ, and by how much; then a metric's paired\n"
    "differences along the curve. Times and memory are not compared. Of runs of different length the common steps are compared.\n"
    "  --metric NAME   metric of the curve (default: reward/mean)\n"
    "  --json          print one JSON object, with every step of the curve\n"
    "Exit status: 0 equal, 1 different, 2 something could not be compared.\n";

static tare_status print_comparison(const struct compare_options *o, bool json, bool *same, bool *damaged, struct err *e)
{
    OWNED(json_decrefp) json_t *result = NULL;
    OWNED(str_free) struct str out = {0};
    TRY(compare_runs(o, &result, e));
    *same = json_bool_or(result, "same", 0);
    *damaged = json_array_size(json_object_get(result, "damaged")) > 0;
    TRY(json ? json_print(result, &out, e) : compare_print(result, &out, e));
    if (json) TRY(str_add(&out, "\n", 1, e));
    return json ? cli_print(&out, e) : cli_show(&out, e);
}

int cmd_diff(int argc, char **argv)
{
    struct err e = {0};
    struct compare_options o = {.metric = "reward/mean", .first = 0, .last = INT64_MAX, .configuration = true};
    bool json = false, same = false, damaged = false;
    int n = 0;
    json_end_with(2);
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--json"))
            json = true;
        else if (!strcmp(argv[i], "--metric") && i + 1 < argc)
            o.metric = argv[++i];
        else if (argv[i][0] != '-' && n < 2)
            o.run[n++] = argv[i];
        else
            return cli_unexpected(argv[i], diff_usage);
    }
    if (n < 2) return cli_usage(diff_usage);
    if (print_comparison(&o, json, &same, &damaged, &e)) {
        log_error(&e);
        return 2;
    }
    if (damaged)
        log_message(LOG_ERROR, "%s and %s could not be compared completely; the output names what is damaged", o.run[0], o.run[1]);
    return damaged ? 2 : !same;
}
