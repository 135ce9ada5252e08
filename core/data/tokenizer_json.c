#include "data/tokenizer_json.h"

#include <string.h>

const json_t *tokenizer_json_member(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    return json_is_null(v) ? NULL : v;
}

const char *tokenizer_json_type(const json_t *o)
{
    return json_text_or(o, "type", "");
}

const json_t *tokenizer_json_part(const json_t *o, const char *list, size_t i)
{
    if (!strcmp(tokenizer_json_type(o), "Sequence")) return json_array_get(json_object_get(o, list), i);
    return i ? NULL : o;
}

tare_status tokenizer_json_only_keys(const json_t *o, const char *const *allowed, const char *where, struct err *e)
{
    if (!json_is_object(o)) FAIL(e, TARE_E_UNSUPPORTED, "%s is not an object", where);
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)o, key, value)
    {
        size_t i = 0;
        while (allowed[i] && strcmp(allowed[i], key)) i++;
        if (!allowed[i]) FAIL(e, TARE_E_UNSUPPORTED, "%s: the member \"%.60s\" is not supported", where, key);
    }
    return TARE_OK;
}

tare_status tokenizer_json_pattern(const json_t *o, const char *where, tare_text *pattern, bool *literal, struct err *e)
{
    const json_t *both = json_object_get(o, "pattern"), *regex = json_object_get(both, "Regex");
    const json_t *text = regex ? regex : json_object_get(both, "String");
    if (!json_is_string(text))
        FAIL(e, TARE_E_UNSUPPORTED, "%s: %s has neither a pattern.Regex nor a pattern.String", where, tokenizer_json_type(o));
    *pattern = (tare_text){json_string_value(text), (int64_t)json_string_length(text)};
    *literal = !regex;
    return TARE_OK;
}
