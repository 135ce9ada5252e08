/* libFuzzer target: untrusted chat templates are parsed, and rendered if that succeeds. The
 * input is the template, and after a NUL the variables as JSON; without them, or if they are not
 * an object, the variables below. */
#include "mutate.h"
#include "template/template.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char USUAL[] =
    "{\"messages\":[{\"role\":\"system\",\"content\":\" S \"},{\"role\":\"user\",\"content\":\"h\\u00e9\\n\"},"
    "{\"role\":\"assistant\",\"content\":\"</"
    "think>x\",\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{\"a\":[1,2.5,null]}}}]}],"
    "\"add_generation_prompt\":true,\"bos_token\":\"<s>\",\"n\":3,\"tools\":null}";

/* Fields of messages, and values on which filters, tests and operators differ. */
static const char *const DATA_PARTS[] = {
    "{\"role\":\"user\",\"content\":\"q\"}",
    "{\"role\":\"assistant\",\"content\":null,\"reasoning_content\":\"r\\n\"}",
    "{\"tool_calls\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}",
    "{\"role\":\"tool\",\"name\":\"f\",\"content\":[{\"type\":\"text\",\"text\":\"t\"},{\"type\":\"image\"}]}",
    "{\"role\":\"system\",\"content\":\"<think>\\n\\n</think>\\n\\n\"}",
    "[{\"type\":\"function\",\"function\":{\"name\":\"g\",\"parameters\":{\"type\":\"object\",\"properties\":{}}}}]",
    "{\"messages\":[],\"tools\":[],\"add_generation_prompt\":false,\"enable_thinking\":true,\"documents\":[]}",
    "\" \\t x \\n\"",
    "\"\\u00df\\u0130\\ufb01\\u03a3\"",
    "\"a,b,,c\"",
    "\"-0x1f\"",
    "\" 1.5e3\"",
    "\"\\u0000\"",
    "\"\\ud83d\\ude00\"",
    "\"<b>&'\\\"</b>\"",
    "[]",
    "{}",
    "[[\"k\",1],[\"l\",2]]",
    "[3,1,2,1]",
    "[true,1,1.0,\"1\",null]",
    "{\"a\":{\"b\":{\"c\":[0]}},\"items\":1,\"b\":2}",
    "true",
    "false",
    "null",
    "0",
    "-7",
    "9223372036854775807",
    "-9223372036854775808",
    "1e308",
    "-0.0",
    "0.1",
    "1e16",
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *source = (const char *)data;
    const char *nul = size ? memchr(source, 0, size) : NULL;
    const int64_t n = nul ? nul - source : (int64_t)size;
    struct template *t = NULL;
    struct err e = {0};
    struct str out = {0};
    json_t *variables = NULL;
    if (template_parse(source, n, "fuzz", &t, &e)) return 0;
    if (nul && !json_parse(nul + 1, (int64_t)size - n - 1, "variables", &variables, &e) && !json_is_object(variables)) {
        json_decref(variables);
        variables = NULL;
    }
    if (!variables && json_parse(USUAL, (int64_t)sizeof USUAL - 1, "variables", &variables, &e)) abort();
    if (!template_render(t, variables, &out, &e) && str_utf8_error(out.data, out.size)) abort();
    str_free(&out);
    json_decref(variables);
    template_free(t);
    return 0;
}

static size_t change_data(uint8_t *part, size_t n, size_t room, struct chance *c)
{
    const struct parts parts = PARTS(DATA_PARTS);
    return mutate_json(part, n, room, &parts, c);
}

static size_t change_source(uint8_t *part, size_t n, size_t room, struct chance *c)
{
    (void)c;
    return LLVMFuzzerMutate(part, n, room); /* by the words of template.dict */
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    struct chance c;
    chance_begin(&c, seed);
    uint8_t *nul = size ? memchr(data, 0, size) : NULL;
    /* It gets its own variables. */
    if (!nul && size + sizeof USUAL < max_size && chance_below(&c, 4) == 0) {
        nul = data + size;
        *nul = 0;
        memcpy(nul + 1, USUAL, sizeof USUAL - 1);
        size += sizeof USUAL;
    }
    const size_t n = nul ? (size_t)(nul - data) : size;
    struct span part = {data, size, max_size, 0, n};
    if (!nul || chance_below(&c, 2)) return mutate_span(&part, change_source, &c);
    part.begin = n + 1;
    part.n = size - n - 1;
    return mutate_span(&part, change_data, &c);
}
