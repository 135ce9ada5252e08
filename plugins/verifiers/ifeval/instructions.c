/* The table of instructions, and the checks of words, letters, and the beginning and end of a
 * response. */
#include "sentences.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tare_status no_memory(tare_error *error)
{
    return tare_fail(error, TARE_E_NOMEM, "no memory");
}

/* ---------------------------------------------------------------- keywords */

/* wanted: every word occurs; else none occurs as a whole word */
static tare_status check_words(const struct ifeval_case *c, const char *key, bool wanted, bool *followed, tare_error *error)
{
    const json_t *list = json_object_get(c->args, key), *word;
    size_t i;
    if (!json_is_array(list) || !json_array_size(list))
        return tare_fail(error, TARE_E_CONFIG, "the row's kwargs for %s need \"%s\", a list of words", c->id, key);
    *followed = true;
    json_array_foreach(list, i, word)
    {
        char pattern[600];
        int64_t n;
        if (!json_is_string(word) || json_string_length(word) > 500)
            return tare_fail(error, TARE_E_CONFIG, "%s: \"%s\" has an invalid item: must be words of up to 500 bytes", c->id, key);
        snprintf(pattern, sizeof pattern, wanted ? "%s" : "\\b%s\\b", json_string_value(word));
        const tare_status s = arg_count(c, pattern, 1, &n, error);
        if (s) return s;
        if ((n > 0) != wanted) *followed = false;
    }
    return TARE_OK;
}

static tare_status check_existence(const struct ifeval_case *c, bool *followed, tare_error *error)
{
    return check_words(c, "keywords", true, followed, error);
}

static tare_status check_forbidden(const struct ifeval_case *c, bool *followed, tare_error *error)
{
    return check_words(c, "forbidden_words", false, followed, error);
}

static tare_status check_frequency(const struct ifeval_case *c, bool *followed, tare_error *error)
{
    char pattern[600];
    tare_text word;
    int64_t n;
    tare_status s = arg_text(c, "keyword", &word, error);
    if (s) return s;
    word = uni_trim(word);
    snprintf(pattern, sizeof pattern, "%.*s", (int)(word.size < 599 ? word.size : 599), word.data);
    s = arg_count(c, pattern, INT64_MAX, &n, error);
    return s ? s : arg_compare(c, n, "frequency", "relation", followed, error);
}

static tare_status check_letters(const struct ifeval_case *c, bool *followed, tare_error *error)
{
    tare_text letter;
    int64_t n = 0, at = 0;
    const tare_status s = arg_text(c, "letter", &letter, error);
    if (s) return s;
    const tare_text text = uni_lower(c->text), wanted = uni_lower(letter);
    const int32_t x = wanted.data ? char_next(wanted, &at) : -1;
    for (at = 0; text.data && at < text.size;) n += char_next(text, &at) == x;
    const bool enough = text.data && wanted.data;
    free((void *)(uintptr_t)text.data);
    free((void *)(uintptr_t)wanted.data);
    return enough ? arg_compare(c, n, "let_frequency", "let_relation", followed, error) : no_memory(error);
}

/* ---------------------------------------------------------------- length */

static tare_status check_number_words(const struct ifeval_case *c, bool *followed, tare_error *error)
{
    int64_t n = 0;
    bool inside = false;
    for (int64_t at = 0; at < c->text.size;) {
        const bool word = char_is_word(char_next(c->text, &at));
        n += word && !inside;
        inside = word;
    }
    return arg_compare(c, n, "num_words", "relation", followed, error);
}

static tare_status check_number_sentences(const struct ifeval_case *c, bool *followed, tare_error *error)
{
    return arg_compare(c, count_sentences(c->text), "num_sentences", "relation", followed, error);
}

static tare_status check_capital_words(const struct ifeval_case *c, bool *followed, tare_error *error)
{
    return arg_compare(c, count_capital_words(c->text), "capital_frequency", "capital_relation", followed, error);
}

/* ---------------------------------------------------------------- the whole text, its beginning,
 * its end */

static tare_status check_capital(const struct ifeval_case *c, bool *followed, tare_error *error)
{
    (void)error;
    *followed = is_upper(c->text) && looks_english(c->text);
    return TARE_OK;
}

static tare_status check_lowercase(const struct ifeval_case *c, bool *followed, tare_error *error)
{
    (void)error;
    *followed = is_lower(c->text) && looks_english(c->text);
    return TARE_OK;
}

static tare_status check_no_comma(const struct ifeval_case *c, bool *followed, tare_error *error)
{
    (void)error;
    *followed = text_find(c->text, ",") < 0;
    return TARE_OK;
}

static tare_status check_constrained(const struct ifeval_case *c, bool *followed, tare_error *error)
{
    (void)error;
    *followed = text_find(c->text, "My answer is yes.") >= 0 || text_find(c->text, "My answer is no.") >= 0 ||
                text_find(c->text, "My answer is maybe.") >= 0;
    return TARE_OK;
}

static tare_status check_postscript(const struct ifeval_case *c, bool *followed, tare_error *error)
{
    char pattern[300];
    tare_text marker;
    int64_t n;
    tare_status s = arg_text(c, "postscript_marker", &marker, error);
    if (s) return s;
    marker = uni_trim(marker);
    if (text_equal(marker, text_of("P.P.S"), false))
        snprintf(pattern, sizeof pattern, "p\\.\\s?p\\.\\s?s");
    else if (text_equal(marker, text_of("P.S."), false))
        snprintf(pattern, sizeof pattern, "p\\.\\s?s\\.");
    else
        snprintf(pattern, sizeof pattern, "%.*s", (int)(marker.size < 299 ? marker.size : 299), marker.data);
    s = arg_count(c, pattern, 1, &n, error);
    if (!s) *followed = n > 0;
    return s;
}

/* Checks whether the text begins (or ends) with the words at `key`, ignoring case. */
static tare_status check_edge(const struct ifeval_case *c, tare_text text, const char *key, bool *followed, tare_error *error)
{
    tare_text words;
    const tare_status s = arg_text(c, key, &words, error);
    if (s) return s;
    const tare_text have = uni_lower(text), want = uni_lower(uni_trim(words));
    const bool enough = have.data && want.data, fits = have.size >= want.size;
    const int64_t from = !strcmp(key, "end_phrase") ? have.size - want.size : 0;
    *followed = enough && fits && text_equal(text_slice(have, from, from + want.size), want, false);
    free((void *)(uintptr_t)have.data);
    free((void *)(uintptr_t)want.data);
    return enough ? TARE_OK : no_memory(error);
}

static tare_status check_end(const struct ifeval_case *c, bool *followed, tare_error *error)
{
    tare_text t = uni_trim(c->text);
    while (t.size && t.data[0] == '"') t = text_slice(t, 1, t.size);
    while (t.size && t.data[t.size - 1] == '"') t.size--;
    return check_edge(c, t, "end_phrase", followed, error);
}

static tare_status check_repeat(const struct ifeval_case *c, bool *followed, tare_error *error)
{
    return check_edge(c, uni_trim(c->text), "prompt_to_repeat", followed, error);
}

/* ---------------------------------------------------------------- the table */

static const struct {
    const char *id;
    ifeval_check check;
} INSTRUCTIONS[] = {
    {"keywords:existence", check_existence},
    {"keywords:frequency", check_frequency},
    {"keywords:forbidden_words", check_forbidden},
    {"keywords:letter_frequency", check_letters},
    {"language:response_language", check_language},
    {"length_constraints:number_sentences", check_number_sentences},
    {"length_constraints:number_paragraphs", check_paragraphs},
    {"length_constraints:number_words", check_number_words},
    {"length_constraints:nth_paragraph_first_word", check_first_word},
    {"detectable_content:number_placeholders", check_placeholders},
    {"detectable_content:postscript", check_postscript},
    {"detectable_format:number_bullet_lists", check_bullets},
    {"detectable_format:constrained_response", check_constrained},
    {"detectable_format:number_highlighted_sections", check_highlights},
    {"detectable_format:multiple_sections", check_sections},
    {"detectable_format:json_format", check_json},
    {"detectable_format:title", check_title},
    {"combination:two_responses", check_two_responses},
    {"combination:repeat_prompt", check_repeat},
    {"startend:end_checker", check_end},
    {"startend:quotation", check_quotation},
    {"change_case:capital_word_frequency", check_capital_words},
    {"change_case:english_capital", check_capital},
    {"change_case:english_lowercase", check_lowercase},
    {"punctuation:no_comma", check_no_comma},
};

ifeval_check ifeval_find(const char *id)
{
    for (size_t i = 0; i < sizeof INSTRUCTIONS / sizeof *INSTRUCTIONS; i++)
        if (!strcmp(INSTRUCTIONS[i].id, id)) return INSTRUCTIONS[i].check;
    return NULL;
}
