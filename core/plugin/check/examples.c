/* Examples for `tare plugin check` of the built-in plugins that need more than their defaults: fields
 * of the rows, required parameters, and files. */
#include "plugin/check/check.h"

#include "base/fs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct example {
    const char *plugin;
    const char *row;        /* a JSON object; NULL: the check's own */
    const char *key, *file; /* a parameter, and the text of the file that it gets; or NULL */
    const char *before;     /* in front of the file's name */
    int64_t fewer;          /* for a plugin that starts a program for each verdict */
};

static const struct example EXAMPLES[] = {
    {.plugin = "code",
     .fewer = 60,
     .row =
         "{\"question\":\"Read a number and print its double.\",\"answer\":\"\",\"tests\":[{\"input\":\"2\",\"output\":\"4\"}]}"},
    {.plugin = "ifeval",
     .row = "{\"question\":\"Answer without commas.\",\"instruction_id_list\":[\"punctuation:no_comma\"],\"kwargs\":[{}]}"},
    {.plugin = "json", .row = "{\"question\":\"Give a number.\",\"answer\":\"42\",\"schema\":{\"type\":\"integer\"}}"},
    {.plugin = "regex", .row = "{\"question\":\"What is 6 times 7?\",\"regex\":\"answer is (\\\\d+)\"}"},
    {.plugin = "python",
     .key = "file",
     .file = "def reward(completions, **row):\n    return [float(len(c) % 3) / 2 for c in completions]\n",
     .before = ""},
    {.plugin = "python_class",
     .key = "file",
     .file = "class Environment:\n    def reset(self, seed=0, **row):\n        return str(seed)\n"
             "    def step(self, act):\n        return str(len(act)), len(act) % 2, len(act) > 3, False, {}\n",
     .before = "",
     .fewer = 60},
    {.plugin = "command",
     .key = "command",
     .file = "while read -r line; do case $line in *42*) echo 1 ;; *) echo 0 ;; esac; done\n",
     .before = "sh "},
};

static tare_status write_file(const char *text, char *path, struct err *e)
{
    TRY(fs_temporary(path, "tare-check", e));
    const int fd = mkstemp(path);
    const ssize_t n = (ssize_t)strlen(text);
    const bool written = fd >= 0 && write(fd, text, (size_t)n) == n;
    if (fd >= 0) close(fd);
    if (!written) FAIL(e, TARE_E_IO, "%s: the example's file cannot be written", path);
    return TARE_OK;
}

tare_status check_example(const char *plugin, struct check_example *out, struct err *e)
{
    *out = (struct check_example){0};
    for (size_t i = 0; i < sizeof EXAMPLES / sizeof *EXAMPLES; i++) {
        const struct example *x = &EXAMPLES[i];
        if (strcmp(x->plugin, plugin)) continue;
        out->row = x->row;
        out->fewer = x->fewer;
        if (!x->key) return TARE_OK;
        TRY(write_file(x->file, out->path, e));
        snprintf(out->assignment, sizeof out->assignment, "%s=%s%s", x->key, x->before, out->path);
        return TARE_OK;
    }
    return TARE_OK;
}

void check_example_end(struct check_example *x)
{
    if (*x->path) unlink(x->path);
}
