/* Checks every reachable subschema, refuses unsupported features by name, and compiles the
 * patterns. */
#include "common/text.h"
#include "schema.h"

#include <stdlib.h>
#include <string.h>

enum { PATTERN_STEPS = 100000, HEAP_KIB = 65536 };
enum form {
    ONE,
    LIST,
    MAP,
    NUMBER,
    STEP,
    COUNT,
    BOOLEAN,
    NAMES,
    NAME_LISTS,
    ANY_LIST,
    KIND,
    PATTERN,
    PATTERN_MAP,
    REFERENCE,
    REFUSED
};

static const struct keyword {
    const char *name;
    enum form form;
} KEYWORDS[] = {{"allOf", LIST},
                {"anyOf", LIST},
                {"oneOf", LIST},
                {"prefixItems", LIST},
                {"not", ONE},
                {"if", ONE},
                {"then", ONE},
                {"else", ONE},
                {"items", ONE},
                {"contains", ONE},
                {"additionalProperties", ONE},
                {"propertyNames", ONE},
                {"properties", MAP},
                {"dependentSchemas", MAP},
                {"$defs", MAP},
                {"patternProperties", PATTERN_MAP},
                {"pattern", PATTERN},
                {"type", KIND},
                {"enum", ANY_LIST},
                {"required", NAMES},
                {"dependentRequired", NAME_LISTS},
                {"minimum", NUMBER},
                {"maximum", NUMBER},
                {"exclusiveMinimum", NUMBER},
                {"exclusiveMaximum", NUMBER},
                {"multipleOf", STEP},
                {"minLength", COUNT},
                {"maxLength", COUNT},
                {"minItems", COUNT},
                {"maxItems", COUNT},
                {"minContains", COUNT},
                {"maxContains", COUNT},
                {"minProperties", COUNT},
                {"maxProperties", COUNT},
                {"uniqueItems", BOOLEAN},
                {"$ref", REFERENCE},
                {"$dynamicRef", REFUSED},
                {"$dynamicAnchor", REFUSED},
                {"$recursiveRef", REFUSED},
                {"$vocabulary", REFUSED},
                {"unevaluatedItems", REFUSED},
                {"unevaluatedProperties", REFUSED}};

static tare_status check_schema(struct schema *s, const json_t *schema, tare_error *error);

static tare_status refuse_keyword(const char *keyword, const char *expected, tare_error *error)
{
    return tare_fail(error, TARE_E_CONFIG, "the schema's \"%s\" is not %s", keyword, expected);
}

static bool is_kind(const json_t *j)
{
    static const char *const KINDS[] = {"null", "boolean", "object", "array", "number", "integer", "string"};
    for (size_t i = 0; json_is_string(j) && i < sizeof KINDS / sizeof *KINDS; i++)
        if (!strcmp(json_string_value(j), KINDS[i])) return true;
    return false;
}

static bool all_are(const json_t *list, bool (*is)(const json_t *))
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!is(json_array_get(list, i))) return false;
    return json_is_array(list);
}

static bool is_text(const json_t *j)
{
    return json_is_string(j);
}

static bool is_texts(const json_t *j)
{
    return all_are(j, is_text);
}

/* Compiles an ECMAScript pattern: \d and \w are ASCII, $ matches only at the end of the text, \u
 * escapes are supported. */
static tare_status compile_pattern(struct schema *s, const char *text, tare_error *error)
{
    int code;
    size_t at;
    char message[200];
    if (schema_pattern(s, text)) return TARE_OK;
    struct schema_pattern *more = realloc(s->patterns, (s->n_patterns + 1) * sizeof *more);
    pcre2_compile_context *context = more ? pcre2_compile_context_create(NULL) : NULL;
    if (more) s->patterns = more;
    if (!context) return tare_fail(error, TARE_E_NOMEM, "no memory");
    pcre2_set_compile_extra_options(context, PCRE2_EXTRA_ALT_BSUX);
    pcre2_code *c =
        pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED,
                      PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_MATCH_UNSET_BACKREF | PCRE2_ALT_BSUX, &code, &at, context);
    pcre2_compile_context_free(context);
    if (!c) {
        pcre2_get_error_message(code, (PCRE2_UCHAR *)message, sizeof message);
        return tare_fail(error, TARE_E_CONFIG, "the schema's pattern '%.200s' cannot be read at byte %zu: %s", text, at + 1,
                         message);
    }
    s->patterns[s->n_patterns++] = (struct schema_pattern){text, c};
    return TARE_OK;
}

static tare_status look_all(struct schema *s, const char *keyword, const json_t *j, tare_error *error)
{
    const char *key;
    json_t *one;
    size_t i;
    tare_status status = TARE_OK;
    json_array_foreach(j, i, one) status = status ? status : check_schema(s, one, error);
    json_object_foreach((json_t *)j, key, one)
    {
        if (!status && !strcmp(keyword, "patternProperties")) status = compile_pattern(s, key, error);
        if (!status) status = check_schema(s, one, error);
    }
    return status;
}

static tare_status look_reference(struct schema *s, const json_t *j, tare_error *error)
{
    const char *ref = json_string_value(j);
    if (!ref) return refuse_keyword("$ref", "a text", error);
    if (*ref != '#')
        return tare_fail(error, TARE_E_UNSUPPORTED,
                         "the schema's \"$ref\" = \"%.200s\" leads out of it; only \"#...\" is supported", ref);
    const json_t *target = schema_target(s->root, ref);
    if (!target) return tare_fail(error, TARE_E_CONFIG, "the schema's \"$ref\" = \"%.200s\" leads to nothing", ref);
    return check_schema(s, target, error);
}

static tare_status look_keyword(struct schema *s, const struct keyword *k, const json_t *j, tare_error *error)
{
    const bool counts = json_is_number(j) && json_number_value(j) >= 0 && json_number_value(j) < 9e15;
    switch (k->form) {
    case ONE:
        return check_schema(s, j, error);
    case LIST:
        return json_array_size(j) ? look_all(s, k->name, j, error) : refuse_keyword(k->name, "a list of schemas", error);
    case MAP:
    case PATTERN_MAP:
        return json_is_object(j) ? look_all(s, k->name, j, error) : refuse_keyword(k->name, "an object of schemas", error);
    case NUMBER:
        return json_is_number(j) ? TARE_OK : refuse_keyword(k->name, "a number", error);
    case STEP:
        return json_is_number(j) && json_number_value(j) > 0 ? TARE_OK : refuse_keyword(k->name, "a number above 0", error);
    case COUNT:
        return counts && json_number_value(j) == (double)(int64_t)json_number_value(j)
                   ? TARE_OK
                   : refuse_keyword(k->name, "a whole number of 0 or more", error);
    case BOOLEAN:
        return json_is_boolean(j) ? TARE_OK : refuse_keyword(k->name, "true or false", error);
    case NAMES:
        return is_texts(j) ? TARE_OK : refuse_keyword(k->name, "a list of texts", error);
    case NAME_LISTS: {
        const char *key;
        json_t *one;
        if (!json_is_object(j)) return refuse_keyword(k->name, "an object of lists of texts", error);
        json_object_foreach((json_t *)j, key, one) if (!is_texts(one)) return refuse_keyword(k->name, "an object of lists of texts",
                                                                                             error);
        return TARE_OK;
    }
    case ANY_LIST:
        return json_is_array(j) ? TARE_OK : refuse_keyword(k->name, "a list", error);
    case KIND:
        return is_kind(j) || all_are(j, is_kind)
                   ? TARE_OK
                   : refuse_keyword(k->name, "null, boolean, object, array, number, integer or string", error);
    case PATTERN:
        return json_is_string(j) ? compile_pattern(s, json_string_value(j), error) : refuse_keyword(k->name, "a text", error);
    case REFERENCE:
        return look_reference(s, j, error);
    default:
        return tare_fail(error, TARE_E_UNSUPPORTED, "the schema uses \"%s\", which is not supported", k->name);
    }
}

static tare_status remember_schema(struct schema *s, const json_t *schema, tare_error *error)
{
    const json_t **more = realloc(s->seen, (s->n_seen + 1) * sizeof *more);
    if (!more) return tare_fail(error, TARE_E_NOMEM, "no memory");
    s->seen = more;
    s->seen[s->n_seen++] = schema;
    return TARE_OK;
}

static tare_status check_schema(struct schema *s, const json_t *schema, tare_error *error)
{
    static const char VERSION[] = "https://json-schema.org/draft/2020-12/schema";
    const json_t *version = json_object_get(schema, "$schema");
    if (json_is_boolean(schema)) return TARE_OK;
    if (!json_is_object(schema)) return tare_fail(error, TARE_E_CONFIG, "a schema has to be an object, true or false");
    for (size_t i = 0; i < s->n_seen; i++)
        if (s->seen[i] == schema) return TARE_OK;
    tare_status status = remember_schema(s, schema, error);
    if (!status && schema != s->root && json_object_get(schema, "$id"))
        status = tare_fail(error, TARE_E_UNSUPPORTED, "the schema uses \"$id\" below its top, which is not supported");
    if (!status && version && (!json_is_string(version) || strncmp(json_string_value(version), VERSION, sizeof VERSION - 1) != 0))
        status = tare_fail(error, TARE_E_UNSUPPORTED, "the schema's \"$schema\" is %.200s; only %s is supported",
                           json_is_string(version) ? json_string_value(version) : "no text", VERSION);
    for (size_t i = 0; !status && i < sizeof KEYWORDS / sizeof *KEYWORDS; i++) {
        const json_t *j = json_object_get(schema, KEYWORDS[i].name);
        if (j) status = look_keyword(s, &KEYWORDS[i], j, error);
    }
    return status;
}

/* ---- references */

/* Decodes one step of a pointer, including the escapes %41, ~0 and ~1. */
static bool unescape_step(const char *from, size_t n, char *to, size_t capacity)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned hex;
        if (k + 1 >= capacity) return false;
        if (from[i] == '%' && i + 2 < n && sscanf(from + i + 1, "%2x", &hex) == 1) {
            to[k++] = (char)hex;
            i += 2;
        } else if (from[i] == '~' && i + 1 < n && (from[i + 1] == '0' || from[i + 1] == '1'))
            to[k++] = from[++i] == '0' ? '~' : '/';
        else
            to[k++] = from[i];
    }
    to[k] = 0;
    return true;
}

static const json_t *find_anchor(const json_t *j, const char *name)
{
    const json_t *anchor = json_object_get(j, "$anchor"), *found = NULL;
    const char *key;
    json_t *one;
    size_t i;
    if (json_is_string(anchor) && !strcmp(json_string_value(anchor), name)) return j;
    json_array_foreach(j, i, one) if (!found) found = find_anchor(one, name);
    json_object_foreach((json_t *)j, key, one) if (!found && strcmp(key, "enum") != 0 && strcmp(key, "const") != 0) found =
        find_anchor(one, name);
    return found;
}

const json_t *schema_target(const json_t *root, const char *ref)
{
    const json_t *j = root;
    char step[512];
    if (!*++ref) return root;
    if (*ref != '/') return find_anchor(root, ref);
    while (j && *ref == '/') {
        const size_t n = strcspn(++ref, "/");
        if (!unescape_step(ref, n, step, sizeof step)) return NULL;
        j = json_is_array(j) ? json_array_get(j, (size_t)strtoul(step, NULL, 10)) : json_object_get(j, step);
        ref += n;
    }
    return j;
}

const pcre2_code *schema_pattern(const struct schema *s, const char *text)
{
    for (size_t i = 0; i < s->n_patterns; i++)
        if (!strcmp(s->patterns[i].text, text)) return s->patterns[i].code;
    return NULL;
}

void schema_free(struct schema *s)
{
    if (!s) return;
    for (size_t i = 0; i < s->n_patterns; i++) pcre2_code_free(s->patterns[i].code);
    pcre2_match_context_free(s->limits);
    free(s->patterns);
    free((void *)s->seen);
    json_decref(s->root);
    free(s);
}

tare_status schema_new(json_t *root, struct schema **out, tare_error *error)
{
    struct schema *s = calloc(1, sizeof *s);
    *out = NULL;
    if (!s) return tare_fail(error, TARE_E_NOMEM, "no memory");
    s->root = json_incref(root);
    s->limits = pcre2_match_context_create(NULL);
    if (s->limits) {
        pcre2_set_match_limit(s->limits, PATTERN_STEPS);
        pcre2_set_heap_limit(s->limits, HEAP_KIB);
    }
    tare_status status = s->limits ? check_schema(s, root, error) : tare_fail(error, TARE_E_NOMEM, "no memory");
    if (status)
        schema_free(s);
    else
        *out = s;
    return status;
}
