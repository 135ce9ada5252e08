/* JSON Schema 2020-12, the subset described in json.c: read once, then checked against values from
 * any thread. */
#ifndef TARE_VERIFIERS_JSON_SCHEMA_H
#define TARE_VERIFIERS_JSON_SCHEMA_H

#define PCRE2_CODE_UNIT_WIDTH 8
#include <jansson.h>
#include <pcre2.h>
#include <stdbool.h>
#include <tare/sdk.h>

struct schema_pattern {
    const char *text; /* owned by the schema */
    pcre2_code *code;
};

struct schema {
    json_t *root;
    struct schema_pattern *patterns;
    size_t n_patterns;
    const json_t **seen; /* schemas that were checked */
    size_t n_seen;
    pcre2_match_context *limits;
};

/* Takes a reference to root. TARE_E_CONFIG names the unsupported or invalid part. */
tare_status schema_new(json_t *root, struct schema **out, tare_error *error);
void schema_free(struct schema *s); /* No-op for NULL. */
/* Returns the target of a $ref: "#", "#/pointer" or "#anchor"; NULL: not found. */
const json_t *schema_target(const json_t *root, const char *ref);
const pcre2_code *schema_pattern(const struct schema *s, const char *text);

enum schema_result { SCHEMA_VALID, SCHEMA_INVALID, SCHEMA_LIMIT };
/* why: static text, the violated keyword. limit: maximum number of steps. */
enum schema_result schema_check(const struct schema *s, const json_t *value, int64_t limit, const char **why);

/* Returns whether two values are equal as JSON: 1 equals 1.0, the order of members does not matter.
 * Each comparison takes a step from *left; false once it reaches 0. */
bool json_same(const json_t *a, const json_t *b, int64_t *left);

#endif
