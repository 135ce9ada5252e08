/* Helpers of every verifier: views of text, and giving a verdict. Nothing here allocates. Texts
 * are counted in bytes and may contain NUL and invalid UTF-8. All functions are pure; any thread
 * may call them. */
#ifndef TARE_VERIFIERS_TEXT_H
#define TARE_VERIFIERS_TEXT_H

#include <stdbool.h>
#include <tare/sdk.h>

bool text_is_space(char c); /* blank, tab, newline, carriage return, form feed, vertical tab */
bool text_is_digit(char c);
bool text_is_letter(char c); /* ASCII */
char text_lower(char c);     /* ASCII only, so independent of the locale */
tare_text text_of(const char *s);
tare_text text_slice(tare_text t, int64_t begin, int64_t end);
tare_text text_trim(tare_text t);
bool text_equal(tare_text a, tare_text b, bool ignore_case);
bool text_one_of(tare_text t, const char *const *list); /* ends with NULL; without regard to case */
bool text_starts(tare_text t, int64_t at, const char *word, bool ignore_case);
int64_t text_find(tare_text t, const char *word);      /* first occurrence; -1: none */
int64_t text_find_last(tare_text t, const char *word); /* last occurrence; -1: none */
/* Returns the text after the last tag that closes a thought (</think>, ...); the whole text if
 * there is none; empty if a thought is still open. opened: the prompt has opened the thought already,
 * so that a text without a closing tag is all thought. */
tare_text text_after_thought(tare_text t, bool opened);
/* The parameter `opened` of every verifier that reads only what follows the thought. */
#define OPENED_PARAM                                                                                                               \
    TARE_BOOL_PARAM(                                                                                                               \
        "opened", "false",                                                                                                         \
        "the prompt has opened the thought already: a completion without </think> is all thought; default: verifier.opened", 0)
/* Returns the position behind the braces that open at i, whatever they hold; -1: they are not
 * closed. */
int64_t text_group_end(tare_text t, int64_t i);
/* Returns the text between the last <answer> and its </answer>; size -1: there is none. */
tare_text text_tagged_answer(tare_text t);

/* Returns the JSON text of a member of the row's outermost object, found without building a tree;
 * size 0: absent. Strings keep their quotes and escapes, arrays their brackets. */
tare_text text_row_field(tare_text row, const char *key);

/* Gives the verdict with its note, a text for people that names what decided; NULL: none. */
tare_status verdict_set(tare_verdict *v, int32_t code, double reward, tare_text extracted, const char *note);

/* Writes a member of an explanation: {"key":"value","key":...}. Invalid UTF-8 is written as U+FFFD. first: true
 * for the first member. */
tare_status explain_text(const tare_stream *out, bool first, const char *key, tare_text value);

#endif
