/* Chat templates from anybody: parse; if that works, render with a few messages. */
#include "template/template.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char text[] =
        "{\"messages\":[{\"role\":\"system\",\"content\":\" S \"},{\"role\":\"user\",\"content\":\"h\\u00e9\\n\"},"
        "{\"role\":\"assistant\",\"content\":\"</"
        "think>x\",\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{\"a\":[1,2.5,null]}}}]}],"
        "\"add_generation_prompt\":true,\"bos_token\":\"<s>\",\"n\":3,\"tools\":null}";
    struct template *t = NULL;
    struct err e = {0};
    struct str out = {0};
    json_t *variables = NULL;
    if (template_parse((const char *)data, (int64_t)size, "fuzz", &t, &e)) return 0;
    if (json_parse(text, (int64_t)sizeof text - 1, "variables", &variables, &e)) abort();
    if (!template_render(t, variables, &out, &e) && str_utf8_error(out.data, out.size)) abort();
    str_free(&out);
    json_decref(variables);
    template_free(t);
    return 0;
}
