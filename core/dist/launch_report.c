#include "dist/launch_report.h"

#include "base/log.h"

#include <string.h>
#include <unistd.h>

enum { RULE = 70 }; /* mpirun frames a report with two lines of 74 dashes */

static const char RULE_LINE[] = "--------------------------------------------------------------------------\n";

static void write_all(int to, const char *text, int64_t n)
{
    while (n > 0) {
        const ssize_t done = write(to, text, (size_t)n);
        if (done <= 0) return; /* standard error is closed */
        text += done;
        n -= done;
    }
}

/* Handles a complete block: a report on ended ranks is kept, any other block (a warning of MPI) is
 * passed to the user. */
static void close_block(struct launch_report *r)
{
    if (r->block.size && strstr(r->block.data, "exit")) {
        str_add(&r->ends, r->block.data, r->block.size, NULL);
    } else {
        write_all(r->to, RULE_LINE, sizeof RULE_LINE - 1);
        write_all(r->to, r->block.data, r->block.size);
        write_all(r->to, RULE_LINE, sizeof RULE_LINE - 1);
    }
    str_clear(&r->block);
}

static void pass_on(struct launch_report *r, const char *text, int64_t n)
{
    if (!r->inside || str_add(&r->block, text, n, NULL)) write_all(r->to, text, n);
}

/* Passes on a line, or the received part of it; its leading dashes have been counted. */
static void pass_line(struct launch_report *r, const char *text, int64_t n)
{
    for (; r->dashes > 0; r->dashes--) pass_on(r, "-", 1);
    pass_on(r, text, n);
    r->dashes = text[n - 1] == '\n' ? 0 : -1;
}

void launch_report_take(struct launch_report *r, const char *text, int64_t n)
{
    for (int64_t at = 0; at < n;) {
        if (text[at] == '-' && r->dashes >= 0) {
            r->dashes++;
            at++;
        } else if (text[at] == '\n' && r->dashes >= RULE) {
            if (r->inside) close_block(r);
            r->inside = !r->inside;
            r->dashes = 0;
            at++;
        } else {
            const char *end = memchr(text + at, '\n', (size_t)(n - at));
            const int64_t size = end ? end + 1 - (text + at) : n - at;
            pass_line(r, text + at, size);
            at += size;
        }
    }
}

void launch_report_end(struct launch_report *r)
{
    for (; r->dashes > 0; r->dashes--) pass_on(r, "-", 1);
    if (r->block.size) write_all(r->to, r->block.data, r->block.size);
    str_free(&r->block);
}
