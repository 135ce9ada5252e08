/* Renders templates: a line of {"template", "variables"} on standard input gives a line of
 * {"text"}, {"refused": message} (the template cannot be parsed) or {"error": message} (rendering
 * fails).
 *   cc -O2 -Icore -Isdk/include bench/template_differential.c build/libtare_template.a \
 *      build/libtare_base.a -ljansson -lpcre2-8 -lutf8proc -lxxhash -lm -o build/template_differential
 * Used by bench/template_differential.py. */
#include "base/log.h"
#include "template/template.h"

#include <string.h>

static tare_status one(void *ctx, const json_t *row, const char *where, struct err *e)
{
    struct template *t = NULL;
    struct str out = {0};
    struct err why = {0};
    const json_t *source = json_object_get(row, "template");
    const char *key = "refused";
    (void)ctx, (void)where;
    tare_status status = template_parse(json_string_value(source), (int64_t)json_string_length(source), "t", &t, &why);
    if (!status) {
        template_set_now(t, 1700000000);
        key = "error";
        status = template_render(t, json_object_get(row, "variables"), &out, &why);
    }
    json_t *said = json_object();
    if (status)
        json_object_set_new(said, key, json_string(why.message));
    else
        json_object_set_new(said, "text", json_stringn(out.data ? out.data : "", (size_t)out.size));
    const int bad = json_dumpf(said, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(said);
    template_free(t);
    str_free(&out);
    return bad ? err_set(e, TARE_E_IO, __FILE__, __LINE__, "standard output") : TARE_OK;
}

int main(void)
{
    struct err e = {0};
    json_begin();
    if (json_each_line(stdin, "standard input", one, NULL, &e)) return log_error(&e), 1;
    return 0;
}
