/* The subset of Jinja that chat templates are written in: output, if/elif/else, for (else, if, unpacking, recursive not), set (also
 * block form), namespace, macros not; filters, tests, slices, string methods, inline if; raise_exception and strftime_now. Rendered as
 * transformers does it: trim_blocks and lstrip_blocks on, one trailing newline of the source dropped. What is not supported is
 * refused at parse time with file:line. Output size, steps and nesting are bounded, so no template hangs.
 * Threads: a parsed template may be rendered from several threads. */
#ifndef TARE_CORE_TEMPLATE_TEMPLATE_H
#define TARE_CORE_TEMPLATE_TEMPLATE_H

#include "base/json.h"

struct template;

tare_status template_parse(const char *source, int64_t n, const char *where, struct template **out, struct err *e);
/* variables: a JSON object of the names a template may use. Appends to out. */
tare_status template_render(const struct template *t, const json_t *variables, struct str *out, struct err *e);
/* Adds, with commas between them, the names that the template reads although neither `variables` (ended by NULL) has them nor the template sets
 * them. Those that it asks about first, as in `x is defined` and `x | default("")`, are not among them. */
tare_status template_unknown(const struct template *t, const char *const *variables, struct str *out, struct err *e);
/* The moment that strftime_now tells, in seconds since 1970, UTC; without it the moment of parsing. */
void template_set_now(struct template *t, int64_t seconds);
void template_free(struct template *t);

#endif
