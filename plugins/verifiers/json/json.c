/* json: the completion is valid JSON, conforms to a schema, or equals the answer.
 *
 * compare = schema   reward 1 if the value is valid under the schema (a file, or the row's)
 *           answer   reward 1 if the value equals the row's answer as JSON: 1 equals 1.0, and
 *                    members may be in any order
 *           both     both
 *           none     reward 1 if it is JSON
 *
 * The value is the last fenced block after the last </think> that is labelled as JSON, else the last
 * one without a label, else the whole text or that between <answer> tags. JSON is that of RFC 8259; a duplicate name in an object, or a number beyond a double's range,
 * is refused (unparsable). The schema is JSON Schema 2020-12 without $dynamicRef, $dynamicAnchor,
 * $vocabulary, unevaluatedItems, unevaluatedProperties, an $id below the top, and a $ref out of the
 * schema; these are refused by name. `format` and the content keywords do not affect validity, as
 * in the standard. Patterns are PCRE2's with the settings of ECMAScript. Verdicts: correct; wrong
 * (valid JSON, but not as required); unparsable; no_answer; timeout (more than `limit` steps,
 * counted, not timed).
 */
#include "common/fences.h"
#include "common/verifier.h"
#include "schema.h"

#include <stdlib.h>
#include <string.h>

enum { P_COMPARE, P_SCHEMA, P_FIELD, P_LIMIT, P_OPENED, N_PARAMS };
enum { BY_SCHEMA, BY_ANSWER, BY_BOTH, BY_NONE };
static const char *const COMPARES[] = {"schema", "answer", "both", "none", NULL};

static const tare_param PARAMS[N_PARAMS] = {
    [P_OPENED] = OPENED_PARAM,
    [P_COMPARE] = TARE_CHOICE_PARAM(
        "compare", "schema", "the value must match the schema, equal the row's answer, both, or be any JSON (none)", COMPARES, 0),
    [P_SCHEMA] = TARE_PATH_PARAM("schema", "", "file of the schema; empty: each row has its own, in `field`", 0),
    [P_FIELD] = TARE_STRING_PARAM("field", "schema", "the row's field that holds its schema, as JSON or as a text of JSON", 0),
    [P_LIMIT] = TARE_INT_PARAM("limit", "1000000", "most steps of one comparison", 1, 1e12, 0),
};

struct verifier {
    const tare_value *values;
    struct schema *schema; /* read from the file; NULL: each row has one */
};

static void destroy(void *self)
{
    struct verifier *j = self;
    schema_free(j->schema);
    free(j);
}

static bool by_schema(const struct verifier *j)
{
    return j->values[P_COMPARE].i == BY_SCHEMA || j->values[P_COMPARE].i == BY_BOTH;
}

static bool by_answer(const tare_value *values)
{
    return values[P_COMPARE].i == BY_ANSWER || values[P_COMPARE].i == BY_BOTH;
}

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    const tare_value *values = setup->values;
    struct verifier *j = calloc(1, sizeof *j);
    if (!j) return tare_fail(error, TARE_E_NOMEM, "no memory");
    j->values = values;
    tare_status s = TARE_OK;
    if (*values[P_SCHEMA].s && by_schema(j)) {
        json_error_t why;
        json_t *root = json_load_file(values[P_SCHEMA].s, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &why);
        s = root ? schema_new(root, &j->schema, error)
                 : tare_fail(error, TARE_E_CONFIG, "schema = %s: line %d: %s", values[P_SCHEMA].s, why.line, why.text);
        json_decref(root);
    }
    if (s)
        destroy(j);
    else
        *self = j;
    return s;
}

/* ---- the value */

static json_t *parse_value(tare_text t)
{
    const size_t flags = JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES;
    json_t *j = t.size ? json_loadb(t.data, (size_t)t.size, flags, NULL) : NULL;
    return j || !t.size ? j
                        /* integers above 2^63 */
                        : json_loadb(t.data, (size_t)t.size, flags | JSON_DECODE_INT_AS_REAL, NULL);
}

/* ---- the schema */

static tare_status row_schema(const struct verifier *j, tare_text row, struct schema **out, tare_error *error)
{
    const char *key = j->values[P_FIELD].s;
    json_t *object = row.size ? json_loadb(row.data, (size_t)row.size, JSON_ALLOW_NUL, NULL) : NULL, *text = NULL;
    json_t *root = json_object_get(object, key);
    tare_status s = TARE_OK;
    if (json_is_string(root)) {
        root = text = parse_value((tare_text){json_string_value(root), (int64_t)json_string_length(root)});
        if (!root) s = tare_fail(error, TARE_E_CONFIG, "the text in the row's field \"%s\" is not JSON", key);
    } else if (!root) {
        s = tare_fail(
            error, TARE_E_CONFIG,
            "the row has no field \"%s\"; set schema = FILE, set field to the row's field with the schema, or set compare = answer or none",
            key);
    }
    if (!s) s = schema_new(root, out, error);
    json_decref(text);
    json_decref(object);
    return s;
}

static tare_status decide_verdict(const struct verifier *j, const struct schema *schema, const json_t *value, const json_t *answer,
                                  tare_text t, tare_verdict *v)
{
    const char *why = NULL;
    int64_t left = j->values[P_LIMIT].i;
    const enum schema_result result = schema ? schema_check(schema, value, left, &why) : SCHEMA_VALID;
    const bool same = !answer || json_same(value, answer, &left);
    if (result == SCHEMA_LIMIT || left <= 0)
        return verdict_set(v, TARE_VERDICT_TIMED_OUT, 0, t, "the comparison reached its limit");
    if (result == SCHEMA_INVALID) return verdict_set(v, TARE_VERDICT_WRONG, 0, t, why ? why : "not valid");
    if (!same) return verdict_set(v, TARE_VERDICT_WRONG, 0, t, "not the answer");
    return verdict_set(v, TARE_VERDICT_CORRECT, 1, t, schema ? "valid" : answer ? "the answer" : "JSON");
}

static tare_status verify_answer(const struct verifier *j, const tare_completion *a, tare_verdict *v, tare_error *error)
{
    const bool needs_schema = by_schema(j), needs_answer = by_answer(j->values);
    char *copy = malloc((size_t)a->text.size + 1);
    if (!copy) return tare_fail(error, TARE_E_NOMEM, "no memory to read a completion");
    const tare_text t = fence_value(text_after_thought(a->text, j->values[P_OPENED].i), FENCE_JSON, copy);
    struct schema *own = NULL;
    tare_status s = needs_schema && !j->schema ? row_schema(j, a->row, &own, error) : TARE_OK;
    json_t *answer = !s && needs_answer ? parse_value(text_trim(a->answer)) : NULL, *value = NULL;
    if (!s && needs_answer && !answer) s = tare_fail(error, TARE_E_CONFIG, "the row's answer is not JSON");
    if (!s) value = parse_value(t);
    if (!s && !value)
        s = verdict_set(v, t.size ? TARE_VERDICT_UNPARSABLE : TARE_VERDICT_NO_ANSWER, 0, t,
                        t.size ? "not JSON" : "the completion is empty");
    else if (!s)
        s = decide_verdict(j, needs_schema ? own ? own : j->schema : NULL, value, answer, t, v);
    json_decref(answer);
    json_decref(value);
    schema_free(own);
    free(copy);
    return s;
}

static uint32_t uses(const tare_value *values)
{
    return TARE_USES_ROW | (by_answer(values) ? TARE_USES_ANSWER : 0u);
}

VERIFIER("json", "the completion is JSON: valid under a schema, or equal to the answer", verify_answer)
