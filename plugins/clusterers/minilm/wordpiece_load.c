/* Reads the vocabulary and the settings of a WordPiece tokenizer. */
#include "wordpiece.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_SIZE = 4096 };

uint64_t bytes_hash(const void *data, int64_t n, uint64_t seed)
{
    const unsigned char *p = data;
    uint64_t h = seed ^ ((uint64_t)n * 0x9E3779B97F4A7C15u);
    for (; n > 0; p += 8, n -= 8) {
        uint64_t word = 0;
        memcpy(&word, p, n < 8 ? (size_t)n : 8);
        h = (h ^ word) * 0x9FB21C651E98DF25u;
        h ^= h >> 32;
    }
    return h;
}

/* ---------------------------------------------------------------- the table of pieces */

static tare_status table_new(struct wordpiece *w, int64_t n, tare_error *error)
{
    w->slots = 64;
    while (w->slots < 2 * n) w->slots *= 2;
    w->table = calloc((size_t)w->slots, sizeof *w->table);
    w->owned = calloc((size_t)n, sizeof *w->owned);
    return w->table && w->owned ? TARE_OK
                                : tare_fail(error, TARE_E_NOMEM, "no memory for a vocabulary of %lld pieces", (long long)n);
}

static const struct piece *find_slot(const struct wordpiece *w, const char *text, int64_t size)
{
    uint64_t hash = 0xCBF29CE484222325u;
    for (int64_t i = 0; i < size; i++) hash = (hash ^ (unsigned char)text[i]) * 0x100000001B3u;
    for (uint64_t at = hash;; at++) {
        const struct piece *p = &w->table[at & (uint64_t)(w->slots - 1)];
        if (!p->text) return NULL;
        if (p->hash == hash && p->size == size && !memcmp(p->text, text, (size_t)size)) return p;
    }
}

static tare_status put_token(struct wordpiece *w, const char *text, int64_t size, int64_t id, tare_error *error)
{
    if (id < 0 || id > INT32_MAX || size > 4096)
        return tare_fail(error, TARE_E_CORRUPT, "the vocabulary has an impossible entry (id %lld)", (long long)id);
    /* vocab.txt of some models repeats a line: the first one counts */
    if (find_slot(w, text, size)) return TARE_OK;
    char *copy = malloc((size_t)size + 1);
    if (!copy) return tare_fail(error, TARE_E_NOMEM, "no memory for the vocabulary");
    memcpy(copy, text, (size_t)size);
    copy[size] = 0;
    w->owned[w->n++] = copy;
    uint64_t hash = 0xCBF29CE484222325u;
    for (int64_t i = 0; i < size; i++) hash = (hash ^ (unsigned char)text[i]) * 0x100000001B3u;
    uint64_t at = hash;
    while (w->table[at & (uint64_t)(w->slots - 1)].text) at++;
    w->table[at & (uint64_t)(w->slots - 1)] = (struct piece){copy, (int32_t)size, (int32_t)id, hash};
    w->hash = bytes_hash(text, size, w->hash ^ (uint64_t)id);
    return TARE_OK;
}

static tare_status id_of(const struct wordpiece *w, const char *token, int32_t *id, tare_error *error)
{
    const struct piece *p = find_slot(w, token, (int64_t)strlen(token));
    if (!p) return tare_fail(error, TARE_E_CORRUPT, "the vocabulary has no %s", token);
    *id = p->id;
    return TARE_OK;
}

static tare_status add_token(struct wordpiece *w, const char *text, int64_t size, int64_t id, tare_error *error)
{
    struct added_token *more = realloc(w->added, (size_t)(w->n_added + 1) * sizeof *more);
    char *copy = malloc((size_t)size + 1);
    if (more) w->added = more;
    if (!more || !copy) {
        free(copy);
        return tare_fail(error, TARE_E_NOMEM, "no memory for added tokens");
    }
    memcpy(copy, text, (size_t)size);
    copy[size] = 0;
    w->added[w->n_added++] = (struct added_token){copy, size, (int32_t)id};
    w->hash = bytes_hash(text, size, w->hash ^ (uint64_t)id);
    return TARE_OK;
}

/* ---------------------------------------------------------------- tokenizer.json */

static int read_flag(const json_t *o, const char *key, int otherwise)
{
    const json_t *v = json_object_get(o, key);
    return json_is_boolean(v) ? json_is_true(v) : otherwise;
}

static const char *text_or(const json_t *o, const char *key, const char *otherwise)
{
    const json_t *v = json_object_get(o, key);
    return json_is_string(v) ? json_string_value(v) : otherwise;
}

static tare_status read_model(struct wordpiece *w, const json_t *root, const char *path, tare_error *error)
{
    const json_t *model = json_object_get(root, "model");
    json_t *vocab = json_object_get(model, "vocab");
    const char *type = text_or(model, "type", "WordPiece"), *key, *normalizer;
    json_t *value;
    if (strcmp(type, "WordPiece") || !json_object_size(vocab))
        return tare_fail(error, TARE_E_UNSUPPORTED, "%s: its model is %s; a WordPiece vocabulary is needed", path, type);
    const json_t *n = json_object_get(root, "normalizer");
    normalizer = text_or(n, "type", "");
    if (strcmp(normalizer, "BertNormalizer"))
        return tare_fail(error, TARE_E_UNSUPPORTED, "%s: its normalizer is %s; BertNormalizer is needed", path,
                         *normalizer ? normalizer : "absent");
    tare_status status = table_new(w, (int64_t)json_object_size(vocab), error);
    json_object_foreach(vocab, key, value)
    {
        if (!status && !json_is_integer(value))
            status = tare_fail(error, TARE_E_CORRUPT, "%s: the id of %s is not a number", path, key);
        if (!status) status = put_token(w, key, (int64_t)strlen(key), json_integer_value(value), error);
    }
    if (status) return status;
    w->clean = read_flag(n, "clean_text", 1);
    w->chinese = read_flag(n, "handle_chinese_chars", 1);
    w->lowercase = read_flag(n, "lowercase", 1);
    w->strip_accents = read_flag(n, "strip_accents", w->lowercase);
    const json_t *longest = json_object_get(model, "max_input_chars_per_word");
    w->max_word = json_is_integer(longest) ? json_integer_value(longest) : 100;
    snprintf(w->prefix, sizeof w->prefix, "%s", text_or(model, "continuing_subword_prefix", "##"));
    return id_of(w, text_or(model, "unk_token", "[UNK]"), &w->unk, error);
}

/* Reads the tokens before and after the text from a TemplateProcessing {"single": [special, A,
 * special]}, or from BertProcessing. */
static tare_status read_template(struct wordpiece *w, const json_t *root, tare_error *error)
{
    const json_t *post = json_object_get(root, "post_processor"), *single = json_object_get(post, "single");
    const char *cls = "[CLS]", *sep = "[SEP]";
    if (json_array_size(single) == 3) {
        cls = text_or(json_object_get(json_array_get(single, 0), "SpecialToken"), "id", cls);
        sep = text_or(json_object_get(json_array_get(single, 2), "SpecialToken"), "id", sep);
    } else if (single) {
        return tare_fail(error, TARE_E_UNSUPPORTED, "tokenizer.json: its post_processor is not [token] text [token]");
    } else {
        if (json_is_array(json_object_get(post, "cls"))) cls = json_string_value(json_array_get(json_object_get(post, "cls"), 0));
        if (json_is_array(json_object_get(post, "sep"))) sep = json_string_value(json_array_get(json_object_get(post, "sep"), 0));
    }
    const tare_status status = id_of(w, cls ? cls : "[CLS]", &w->cls, error);
    return status ? status : id_of(w, sep ? sep : "[SEP]", &w->sep, error);
}

static tare_status read_json(struct wordpiece *w, const json_t *root, const char *path, tare_error *error)
{
    tare_status status = read_model(w, root, path, error);
    if (!status) status = read_template(w, root, error);
    size_t i;
    const json_t *token;
    json_array_foreach(json_object_get(root, "added_tokens"), i, token)
    {
        const json_t *text = json_object_get(token, "content"), *id = json_object_get(token, "id");
        if (!status && json_string_length(text) && json_is_integer(id))
            status = add_token(w, json_string_value(text), (int64_t)json_string_length(text), json_integer_value(id), error);
    }
    return status;
}

/* ---------------------------------------------------------------- vocab.txt */

static tare_status read_lines(struct wordpiece *w, FILE *f, tare_error *error)
{
    char *line = NULL;
    size_t capacity = 0;
    int64_t n = 0;
    while (getline(&line, &capacity, f) >= 0) n++;
    tare_status status = TARE_OK;
    if (!feof(f))
        status = tare_fail(error, TARE_E_IO, "vocab.txt: line %lld cannot be read: %s", (long long)n + 1, strerror(errno));
    else
        status = n ? table_new(w, n, error) : tare_fail(error, TARE_E_CORRUPT, "vocab.txt is empty");
    rewind(f);
    for (int64_t id = 0; !status && id < n; id++) {
        ssize_t size = getline(&line, &capacity, f);
        if (size < 0)
            status = tare_fail(error, TARE_E_IO, "vocab.txt: line %lld cannot be read: %s", (long long)id + 1, strerror(errno));
        while (size > 0 && (line[size - 1] == '\n' || line[size - 1] == '\r')) size--;
        if (size > 0) status = put_token(w, line, size, id, error);
    }
    free(line);
    return status;
}

static tare_status read_vocabulary(struct wordpiece *w, const char *folder, tare_error *error)
{
    static const char *const SPECIAL[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/vocab.txt", folder);
    FILE *f = fopen(path, "rb");
    if (!f) return tare_fail(error, TARE_E_NOT_FOUND, "%s: missing tokenizer.json or vocab.txt", folder);
    tare_status status = read_lines(w, f, error);
    fclose(f);
    if (status) return status;
    snprintf(path, sizeof path, "%s/tokenizer_config.json", folder);
    json_t *config = json_load_file(path, 0, NULL);
    w->clean = 1;
    w->chinese = read_flag(config, "tokenize_chinese_chars", 1);
    w->lowercase = read_flag(config, "do_lower_case", 1);
    w->strip_accents = read_flag(config, "strip_accents", w->lowercase);
    json_decref(config);
    w->max_word = 100;
    snprintf(w->prefix, sizeof w->prefix, "##");
    for (size_t i = 0; i < sizeof SPECIAL / sizeof *SPECIAL && !status; i++) {
        const struct piece *p = find_slot(w, SPECIAL[i], (int64_t)strlen(SPECIAL[i]));
        if (p) status = add_token(w, p->text, p->size, p->id, error);
    }
    if (!status) status = id_of(w, "[UNK]", &w->unk, error);
    if (!status) status = id_of(w, "[CLS]", &w->cls, error);
    return status ? status : id_of(w, "[SEP]", &w->sep, error);
}

tare_status wordpiece_open(struct wordpiece *w, const char *folder, tare_error *error)
{
    char path[PATH_SIZE];
    *w = (struct wordpiece){0};
    if (snprintf(path, sizeof path, "%s/tokenizer.json", folder) >= (int)sizeof path)
        return tare_fail(error, TARE_E_INVALID, "%s: path too long", folder);
    FILE *f = fopen(path, "rb");
    tare_status status;
    if (f) {
        json_error_t bad;
        json_t *root = json_loadf(f, 0, &bad);
        fclose(f);
        status =
            root ? read_json(w, root, path, error) : tare_fail(error, TARE_E_CORRUPT, "%s: line %d: %s", path, bad.line, bad.text);
        json_decref(root);
    } else {
        status = read_vocabulary(w, folder, error);
    }
    const int64_t settings[] = {w->clean, w->chinese, w->lowercase, w->strip_accents, w->max_word, w->cls, w->sep, w->unk};
    w->hash = bytes_hash(settings, sizeof settings, bytes_hash(w->prefix, (int64_t)strlen(w->prefix), w->hash));
    if (status) wordpiece_close(w);
    return status;
}

void wordpiece_close(struct wordpiece *w)
{
    for (int64_t i = 0; i < w->n; i++) free(w->owned[i]);
    for (int64_t i = 0; i < w->n_added; i++) free(w->added[i].text);
    free(w->owned);
    free(w->added);
    free(w->table);
    *w = (struct wordpiece){0};
}
