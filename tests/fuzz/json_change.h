/* Makes one change in a JSON tree, chosen by the bytes of a fuzz target: a value is replaced,
 * removed or duplicated. */
#ifndef TARE_TESTS_JSON_CHANGE_H
#define TARE_TESTS_JSON_CHANGE_H

#include "base/json.h"
#include "bytes.h"

#include <stdlib.h>

static inline json_t *json_any(struct bytes *b)
{
    static const char *const TEXTS[] = {"",        "a",   "<s>",     "\xc3\xa4", "none",        "gpt2",
                                        "float32", "1e9", "{{ x }}", "..",       "\xe2\x96\x81"};
    static const double REALS[] = {0.5, -1, 1e308, 1e-308, 3.0};
    json_t *out;
    size_t n;
    switch (byte(b) % 9) {
    case 0:
        return json_null();
    case 1:
        return json_boolean(byte(b) & 1);
    case 2:
    case 3:
        return json_integer(bytes_number(b));
    case 4:
        return json_real(REALS[(size_t)byte(b) % (sizeof REALS / sizeof *REALS)]);
    case 5:
        return json_string(TEXTS[(size_t)byte(b) % (sizeof TEXTS / sizeof *TEXTS)]);
    case 6: { /* only valid UTF-8 enters the tree: files that are not UTF-8 have separate targets */
        const char *raw = bytes_take(b, (size_t)byte(b), &n);
        out = json_stringn(raw, n);
        return out ? out : json_string("?");
    }
    case 7:
        out = json_array();
        for (int i = byte(b) % 4; i > 0; i--) json_array_append_new(out, json_integer(byte(b)));
        return out;
    default:
        return json_object();
    }
}

static inline void json_change_array(json_t *at, size_t i, int how, struct bytes *b)
{
    if (how == 0)
        json_array_remove(at, i);
    else if (how == 1)
        json_array_insert_new(at, i, json_deep_copy(json_array_get(at, i)));
    else
        json_array_set_new(at, i, json_any(b));
}

static inline void json_change_object(json_t *at, const char *key, int how, struct bytes *b)
{
    char other[80];
    if (how == 0) {
        json_object_del(at, key);
        return;
    }
    snprintf(other, sizeof other, "%.60s%s", key, how == 1 ? "_" : "");
    if (how == 1) json_object_set_new(at, other, json_deep_copy(json_object_get(at, key)));
    if (how > 1) json_object_set_new(at, key, json_any(b));
}

/* Descends from the root; at each level one byte chooses the child, another one whether to stop
 * there. */
static inline void json_change(json_t *root, struct bytes *b)
{
    for (json_t *at = root, *child;; at = child) {
        const size_t i = (size_t)byte(b) * 256 + (size_t)byte(b);
        const int how = byte(b) % 8; /* 4 and more: further down if possible */
        if (json_is_array(at) && json_array_size(at)) {
            const size_t k = i % json_array_size(at);
            child = json_array_get(at, k);
            if (how >= 4 && (json_array_size(child) || json_object_size(child))) continue;
            json_change_array(at, k, how % 4, b);
        } else if (json_is_object(at) && json_object_size(at)) {
            void *place = json_object_iter(at);
            for (size_t k = i % json_object_size(at); k; k--) place = json_object_iter_next(at, place);
            child = json_object_iter_value(place);
            if (how >= 4 && (json_array_size(child) || json_object_size(child))) continue;
            json_change_object(at, json_object_iter_key(place), how % 4, b);
        }
        return;
    }
}

#endif
