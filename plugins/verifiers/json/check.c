#include "schema.h"

#include <math.h>
#include <string.h>

enum { DEPTH = 1000 }; /* far below a thread's stack size */

struct check {
    const struct schema *s;
    const char *why; /* the first violated keyword of the branch checked last */
    int64_t left;
    bool over; /* a limit was reached: the result is undefined */
};

static bool is_valid(struct check *c, const json_t *schema, const json_t *value, int depth);

/* ---- values */

/* -1, 0 or 1; compares integers without rounding to double */
static int compare_numbers(const json_t *a, const json_t *b)
{
    if (json_is_integer(a) && json_is_integer(b)) {
        const json_int_t x = json_integer_value(a), y = json_integer_value(b);
        return (x > y) - (x < y);
    }
    if (json_is_real(a) && json_is_real(b)) {
        const double x = json_real_value(a), y = json_real_value(b);
        return (x > y) - (x < y);
    }
    if (json_is_real(a)) return -compare_numbers(b, a);
    const double y = json_real_value(b);
    if (y >= 0x1p63) return -1;
    if (y < -0x1p63) return 1;
    const json_int_t x = json_integer_value(a), whole = (json_int_t)y;
    return x != whole ? (x > whole) - (x < whole) : (y < (double)whole) - (y > (double)whole);
}

static bool same_text(const json_t *a, const json_t *b)
{
    const size_t n = json_string_length(a);
    return n == json_string_length(b) && !memcmp(json_string_value(a), json_string_value(b), n);
}

bool json_same(const json_t *a, const json_t *b, int64_t *left)
{
    const char *key;
    json_t *one;
    size_t i, n;
    if (*left <= 0 || !(*left)--) return false;
    if (json_is_number(a) && json_is_number(b)) return !compare_numbers(a, b);
    if (json_typeof(a) != json_typeof(b)) return false;
    if (json_is_string(a)) return same_text(a, b);
    if (json_is_array(a)) {
        if (json_array_size(a) != json_array_size(b)) return false;
        json_array_foreach(a, i, one) if (!json_same(one, json_array_get(b, i), left)) return false;
    }
    if (json_is_object(a)) {
        if (json_object_size(a) != json_object_size(b)) return false;
        json_object_keylen_foreach((json_t *)a, key, n, one)
        {
            const json_t *other = json_object_getn(b, key, n);
            if (!other || !json_same(one, other, left)) return false;
        }
    }
    return true;
}

static bool equal_values(struct check *c, const json_t *a, const json_t *b)
{
    const bool same = json_same(a, b, &c->left);
    c->over |= c->left <= 0;
    return same;
}

static bool is_whole(const json_t *v)
{
    return json_is_integer(v) || (json_is_real(v) && floor(json_real_value(v)) == json_real_value(v));
}

static bool is_of(const json_t *v, const char *kind)
{
    if (!strcmp(kind, "null")) return json_is_null(v);
    if (!strcmp(kind, "boolean")) return json_is_boolean(v);
    if (!strcmp(kind, "object")) return json_is_object(v);
    if (!strcmp(kind, "array")) return json_is_array(v);
    if (!strcmp(kind, "number")) return json_is_number(v);
    if (!strcmp(kind, "integer")) return is_whole(v);
    return json_is_string(v);
}

struct decimal {
    uint64_t digits; /* below 10^17, and no multiple of 10 except 0 */
    int exponent;
};

/* Returns the shortest decimal that reads as |x|. */
static struct decimal decimal_of(double x)
{
    struct decimal d = {0};
    char text[40];
    for (int places = 14; places < 17; places++) {
        snprintf(text, sizeof text, "%.*e", places, fabs(x));
        if (strtod(text, NULL) == fabs(x)) break;
    }
    const char *e = strchr(text, 'e');
    for (const char *p = text; p < e; p++)
        if (*p >= '0' && *p <= '9') d.digits = 10 * d.digits + (uint64_t)(*p - '0');
    d.exponent = (int)strtol(e + 1, NULL, 10) - (int)(e - text - 2);
    for (; d.digits && d.digits % 10 == 0; d.digits /= 10) d.exponent++;
    return d;
}

/* Counts in decimals: 0.3 is 3 times 0.1, though not as doubles. */
static bool is_multiple(const json_t *v, const json_t *of)
{
    if (json_is_integer(v) && json_is_integer(of)) return json_integer_value(v) % json_integer_value(of) == 0;
    const struct decimal x = decimal_of(json_number_value(v)), m = decimal_of(json_number_value(of));
    uint64_t rest = x.digits % m.digits;
    for (int k = m.exponent; k < x.exponent && rest; k++) rest = 10 * rest % m.digits;
    return !x.digits || (!rest && x.exponent >= m.exponent); /* otherwise x.digits would be a multiple of 10 */
}

static int64_t count_characters(const json_t *text)
{
    const char *t = json_string_value(text);
    int64_t n = 0;
    for (size_t i = 0; i < json_string_length(text); i++) n += ((unsigned char)t[i] & 0xC0) != 0x80;
    return n;
}

static bool matches_pattern(struct check *c, const char *pattern, const char *text, size_t n)
{
    const pcre2_code *code = schema_pattern(c->s, pattern);
    pcre2_match_data *match = pcre2_match_data_create_from_pattern(code, NULL);
    const int got = match ? pcre2_match(code, (PCRE2_SPTR)text, n, 0, PCRE2_NO_JIT, match, c->s->limits) : PCRE2_ERROR_NOMEMORY;
    pcre2_match_data_free(match);
    c->left -= 1 + (int64_t)n / 64;
    if (got < 0 && got != PCRE2_ERROR_NOMATCH) c->over = true;
    return got >= 0;
}

/* ---- keywords; an absent keyword is satisfied */

static bool violates(struct check *c, const char *why)
{
    c->why = why;
    return false;
}

static const json_t *get_keyword(const json_t *schema, const char *key)
{
    return json_object_get(schema, key);
}

static bool is_below(const json_t *schema, const char *key, int64_t n)
{
    const json_t *least = get_keyword(schema, key);
    return least && (double)n < json_number_value(least);
}

static bool is_above(const json_t *schema, const char *key, int64_t n)
{
    const json_t *most = get_keyword(schema, key);
    return most && (double)n > json_number_value(most);
}

static bool valid_any(struct check *c, const json_t *schema, const json_t *v)
{
    const json_t *type = get_keyword(schema, "type"), *list = get_keyword(schema, "enum"), *constant = get_keyword(schema, "const");
    bool found = !type || (json_is_string(type) && is_of(v, json_string_value(type)));
    for (size_t i = 0; !found && i < json_array_size(type); i++) found = is_of(v, json_string_value(json_array_get(type, i)));
    if (!found) return violates(c, "not valid: type");
    found = !list;
    for (size_t i = 0; !found && i < json_array_size(list); i++) found = equal_values(c, v, json_array_get(list, i));
    if (!found) return violates(c, "not valid: enum");
    return !constant || equal_values(c, v, constant) || violates(c, "not valid: const");
}

static bool valid_number(struct check *c, const json_t *schema, const json_t *v)
{
    const json_t *least = get_keyword(schema, "minimum"), *most = get_keyword(schema, "maximum"),
                 *more = get_keyword(schema, "exclusiveMinimum"), *less = get_keyword(schema, "exclusiveMaximum"),
                 *of = get_keyword(schema, "multipleOf");
    if (least && compare_numbers(v, least) < 0) return violates(c, "not valid: minimum");
    if (most && compare_numbers(v, most) > 0) return violates(c, "not valid: maximum");
    if (more && compare_numbers(v, more) <= 0) return violates(c, "not valid: exclusiveMinimum");
    if (less && compare_numbers(v, less) >= 0) return violates(c, "not valid: exclusiveMaximum");
    return !of || is_multiple(v, of) || violates(c, "not valid: multipleOf");
}

static bool valid_text(struct check *c, const json_t *schema, const json_t *v)
{
    const json_t *pattern = get_keyword(schema, "pattern");
    const int64_t n = count_characters(v);
    if (is_below(schema, "minLength", n)) return violates(c, "not valid: minLength");
    if (is_above(schema, "maxLength", n)) return violates(c, "not valid: maxLength");
    return !pattern || matches_pattern(c, json_string_value(pattern), json_string_value(v), json_string_length(v)) ||
           violates(c, "not valid: pattern");
}

static bool valid_contains(struct check *c, const json_t *schema, const json_t *v, int depth)
{
    const json_t *contains = get_keyword(schema, "contains");
    int64_t found = 0;
    if (!contains) return true;
    for (size_t i = 0; i < json_array_size(v); i++) found += is_valid(c, contains, json_array_get(v, i), depth);
    if (get_keyword(schema, "minContains") ? is_below(schema, "minContains", found) : !found)
        return violates(c, "not valid: contains");
    return !is_above(schema, "maxContains", found) || violates(c, "not valid: maxContains");
}

static bool valid_array(struct check *c, const json_t *schema, const json_t *v, int depth)
{
    const json_t *prefix = get_keyword(schema, "prefixItems"), *items = get_keyword(schema, "items");
    const size_t n = json_array_size(v), first = json_array_size(prefix);
    if (is_below(schema, "minItems", (int64_t)n)) return violates(c, "not valid: minItems");
    if (is_above(schema, "maxItems", (int64_t)n)) return violates(c, "not valid: maxItems");
    for (size_t i = 0; i < n; i++) {
        const json_t *one = i < first ? json_array_get(prefix, i) : items;
        if (one && !is_valid(c, one, json_array_get(v, i), depth)) return false;
    }
    if (json_is_true(get_keyword(schema, "uniqueItems")))
        for (size_t i = 0; i < n && !c->over; i++)
            for (size_t k = 0; k < i; k++)
                if (equal_values(c, json_array_get(v, i), json_array_get(v, k))) return violates(c, "not valid: uniqueItems");
    return valid_contains(c, schema, v, depth);
}

/* Checks properties, patternProperties, additionalProperties and propertyNames for one member. */
static bool valid_member(struct check *c, const json_t *schema, const char *key, size_t n, const json_t *v, int depth)
{
    const json_t *own = json_object_getn(get_keyword(schema, "properties"), key, n),
                 *others = get_keyword(schema, "additionalProperties"), *names = get_keyword(schema, "propertyNames");
    bool known = own != NULL;
    const char *pattern;
    json_t *one;
    if (own && !is_valid(c, own, v, depth)) return false;
    json_object_foreach((json_t *)get_keyword(schema, "patternProperties"), pattern, one)
    {
        if (!matches_pattern(c, pattern, key, n)) continue;
        known = true;
        if (!is_valid(c, one, v, depth)) return false;
    }
    if (!known && others && !is_valid(c, others, v, depth))
        return json_is_false(others) ? violates(c, "not valid: additionalProperties") : false;
    if (!names) return true;
    json_t *name = json_stringn(key, n);
    const bool fits = name && is_valid(c, names, name, depth);
    json_decref(name);
    return fits || violates(c, "not valid: propertyNames");
}

static bool has_all(const json_t *names, const json_t *v)
{
    for (size_t i = 0; i < json_array_size(names); i++) {
        const json_t *name = json_array_get(names, i);
        if (!json_object_getn(v, json_string_value(name), json_string_length(name))) return false;
    }
    return true;
}

static bool valid_object(struct check *c, const json_t *schema, const json_t *v, int depth)
{
    const int64_t size = (int64_t)json_object_size(v);
    const char *key;
    json_t *one;
    size_t n;
    if (is_below(schema, "minProperties", size)) return violates(c, "not valid: minProperties");
    if (is_above(schema, "maxProperties", size)) return violates(c, "not valid: maxProperties");
    if (!has_all(get_keyword(schema, "required"), v)) return violates(c, "not valid: required");
    json_object_keylen_foreach((json_t *)get_keyword(schema, "dependentRequired"), key, n, one)
    {
        if (json_object_getn(v, key, n) && !has_all(one, v)) return violates(c, "not valid: dependentRequired");
    }
    json_object_keylen_foreach((json_t *)get_keyword(schema, "dependentSchemas"), key, n, one)
    {
        if (json_object_getn(v, key, n) && !is_valid(c, one, v, depth)) return false;
    }
    json_object_keylen_foreach((json_t *)v, key, n, one)
    {
        if (!valid_member(c, schema, key, n, one, depth)) return false;
    }
    return true;
}

static int64_t how_many(struct check *c, const json_t *schemas, const json_t *v, int depth)
{
    int64_t n = 0;
    for (size_t i = 0; i < json_array_size(schemas); i++) n += is_valid(c, json_array_get(schemas, i), v, depth);
    return n;
}

static bool valid_combined(struct check *c, const json_t *schema, const json_t *v, int depth)
{
    const json_t *all = get_keyword(schema, "allOf"), *any = get_keyword(schema, "anyOf"), *one = get_keyword(schema, "oneOf"),
                 *no = get_keyword(schema, "not"), *condition = get_keyword(schema, "if"), *ref = get_keyword(schema, "$ref");
    if (ref && !is_valid(c, schema_target(c->s->root, json_string_value(ref)), v, depth)) return false;
    for (size_t i = 0; i < json_array_size(all); i++)
        if (!is_valid(c, json_array_get(all, i), v, depth)) return false;
    if (any && !how_many(c, any, v, depth)) return violates(c, "not valid: anyOf");
    if (one && how_many(c, one, v, depth) != 1) return violates(c, "not valid: oneOf");
    if (no && is_valid(c, no, v, depth)) return violates(c, "not valid: not");
    if (!condition) return true;
    const json_t *next = get_keyword(schema, is_valid(c, condition, v, depth) ? "then" : "else");
    return !next || is_valid(c, next, v, depth);
}

static bool is_valid(struct check *c, const json_t *schema, const json_t *v, int depth)
{
    if (c->over || depth >= DEPTH || c->left-- <= 0) {
        c->over = true;
        return false;
    }
    if (json_is_boolean(schema)) return json_is_true(schema) || violates(c, "not valid: false");
    return valid_any(c, schema, v) && (!json_is_number(v) || valid_number(c, schema, v)) &&
           (!json_is_string(v) || valid_text(c, schema, v)) && (!json_is_array(v) || valid_array(c, schema, v, depth + 1)) &&
           (!json_is_object(v) || valid_object(c, schema, v, depth + 1)) && valid_combined(c, schema, v, depth + 1);
}

enum schema_result schema_check(const struct schema *s, const json_t *value, int64_t limit, const char **why)
{
    struct check c = {.s = s, .left = limit};
    const bool fits = is_valid(&c, s->root, value, 0);
    *why = c.why;
    return c.over ? SCHEMA_LIMIT : fits ? SCHEMA_VALID : SCHEMA_INVALID;
}
