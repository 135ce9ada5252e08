/* JSON Schema 2020-12, the part of it that json.c names: read once, then asked about values from any thread. */
#ifndef TARE_VERIFIERS_JSON_SCHEMA_H
#define TARE_VERIFIERS_JSON_SCHEMA_H

#define PCRE2_CODE_UNIT_WIDTH 8
#include <jansson.h>
#include <pcre2.h>
#include <stdbool.h>
#include <tare/sdk.h>

struct schema_pattern {
    const char *text; /* of the schema's */
    pcre2_code *code;
};

struct schema {
    json_t *root;
    struct schema_pattern *patterns;
    size_t n_patterns;
    const json_t **seen; /* schemas that have been looked at */
    size_t n_seen;
    pcre2_match_context *limits;
};

/* Takes a reference of root. TARE_E_CONFIG names what is not supported, or is no schema. */
tare_status schema_new(json_t *root, struct schema **out, tare_error *error);
void schema_free(struct schema *s); /* NULL: nothing */
/* The target of a $ref of the schema, "#", "#/pointer" or "#anchor"; NULL: there is none. */
const json_t *schema_target(const json_t *root, const char *ref);
const pcre2_code *schema_pattern(const struct schema *s, const char *text);

enum schema_result { SCHEMA_VALID, SCHEMA_INVALID, SCHEMA_LIMIT };
/* why: static text, the keyword that the value does not fulfil. limit: most steps. */
enum schema_result schema_check(const struct schema *s, const json_t *value, int64_t limit, const char **why);

/* Equal as JSON: 1 and 1.0 are, the order of members does not matter. Each comparison takes a step from *left; 0 left: false. */
bool json_same(const json_t *a, const json_t *b, int64_t *left);

#endif
