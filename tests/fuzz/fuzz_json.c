/* libFuzzer target: any bytes as a row, in the JSON reader for plugins (tare/json.h). A text that the
 * engine's parser accepts is valid, and is visited to its last value; every view lies in the text. */
#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <tare/json.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_inside(tare_text whole, tare_text part)
{
    if (part.size < 1 || part.data < whole.data || part.data + part.size > whole.data + whole.size) abort();
}

/* Decodes a string at several capacities; all must tell the same size. */
static void read_text(tare_text value)
{
    const int64_t size = tare_json_text(value, NULL, 0);
    if (size > value.size) abort();
    if (size < 0) return;
    for (int64_t capacity = size; capacity >= 0; capacity = capacity / 2 - !capacity) {
        char *out = malloc((size_t)capacity + 1);
        if (!out || tare_json_text(value, out, capacity) != size) abort();
        free(out);
    }
}

/* Visits a value and all values in it. */
static void visit(tare_text value, int depth)
{
    double number = 0;
    tare_text found;
    if (!tare_json_valid(value) || depth > TARE_JSON_DEPTH) abort();
    if (tare_json_number(value, &number) && !isfinite(number)) abort();
    read_text(value);
    (void)tare_json_equals(value, "a");
    if (tare_json_find(value, "a", &found)) look_inside(value, found);
    struct tare_json_items items = tare_json_begin(value);
    while (tare_json_next(&items)) {
        look_inside(value, items.value);
        if (items.key.size) look_inside(value, items.key);
        if (items.key.size && tare_json_text(items.key, NULL, 0) < 0) abort();
        visit(items.value, depth + 1);
    }
}

static int64_t depth_of(tare_text text)
{
    int64_t open = 0;
    for (int64_t i = 0; i < text.size; i++) open += text.data[i] == '[' || text.data[i] == '{';
    return open;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A copy of the exact size, so that the sanitizer sees a read behind it. */
    char *bytes = malloc(size ? size : 1);
    struct err e = {0};
    json_t *root = NULL;
    tare_text value;
    if (!bytes) return 0;
    if (size) memcpy(bytes, data, size);
    const tare_text text = {bytes, (int64_t)size};
    const int valid = tare_json_valid(text);
    if (!json_parse(bytes, text.size, "fuzz", &root, &e)) {
        if (!valid && depth_of(text) <= TARE_JSON_DEPTH) abort();
        json_decref(root);
    }
    (void)tare_json_find(text, "a", &value);
    read_text(text);
    if (valid && size < 4096) visit(text, 0); /* each level is read again from its beginning */
    free(bytes);
    return 0;
}
