/* The subset of Jinja used by chat templates: output, if/elif/else, for (else, if, unpacking; not
 * recursive), set (also block form), with, filter, raw, namespace, macro (top level); filters, tests,
 * slices, string methods, inline if; raise_exception and strftime_now. Rendering follows transformers: trim_blocks and
 * lstrip_blocks are on, one trailing newline of the source is dropped. Unsupported syntax is
 * refused at parse time with file:line. Output size, steps and nesting are bounded, so no template
 * hangs. Threads: a parsed template may be rendered from several threads. */
#ifndef TARE_CORE_TEMPLATE_TEMPLATE_H
#define TARE_CORE_TEMPLATE_TEMPLATE_H

#include "base/json.h"

struct template;

tare_status template_parse(const char *source, int64_t n, const char *where, struct template **out, struct err *e);
/* Renders t and appends the output to out. variables: a JSON object of the names a template may
 * use. */
tare_status template_render(const struct template *t, const json_t *variables, struct str *out, struct err *e);
/* Appends, separated by commas, the names that the template reads but that neither `variables`
 * (ending with NULL) nor the template defines. Names that it tests first, as in `x is defined` and
 * `x | default("")`, are left out. */
tare_status template_unknown(const struct template *t, const char *const *variables, struct str *out, struct err *e);
/* Sets the time that strftime_now returns, in seconds since 1970, UTC. Default: the moment of
 * parsing. */
void template_set_now(struct template *t, int64_t seconds);
void template_free(struct template *t);

#endif
