/* Internal to the ifeval verifier. The checks have no state: any thread may call them. */
#ifndef TARE_VERIFIERS_IFEVAL_H
#define TARE_VERIFIERS_IFEVAL_H

#include "common/text.h"

#include <jansson.h>

enum ifeval_language { LANGUAGE_OWN, LANGUAGE_SCRIPT, LANGUAGE_SKIP };

/* A response and the arguments of one instruction. */
struct ifeval_case {
    tare_text text; /* valid UTF-8, not blank */
    const json_t *args;
    const char *id; /* of the instruction, for messages */
    enum ifeval_language language;
};

/* ---- instructions.c */
typedef tare_status (*ifeval_check)(const struct ifeval_case *c, bool *followed, tare_error *error);
/* NULL: unknown instruction. */
ifeval_check ifeval_find(const char *id);

/* ---- arguments.c: arguments of an instruction; TARE_E_CONFIG names the instruction and the
 * argument */
tare_status arg_whole(const struct ifeval_case *c, const char *key, int64_t *out, tare_error *error);
tare_status arg_text(const struct ifeval_case *c, const char *key, tare_text *out, tare_error *error);
/* Compares n with the number at `key` by `relation`: "less than" or "at least". */
tare_status arg_compare(const struct ifeval_case *c, int64_t n, const char *key, const char *relation, bool *out,
                        tare_error *error);
/* Counts matches of the pattern, ignoring case, up to `most`. The pattern is Python's; PCRE2
 * supports those used in data sets. */
tare_status arg_count(const struct ifeval_case *c, const char *pattern, int64_t most, int64_t *n, tare_error *error);

/* ---- format.c: the layout of a response */
tare_status check_paragraphs(const struct ifeval_case *c, bool *followed, tare_error *error);
tare_status check_first_word(const struct ifeval_case *c, bool *followed, tare_error *error);
tare_status check_placeholders(const struct ifeval_case *c, bool *followed, tare_error *error);
tare_status check_bullets(const struct ifeval_case *c, bool *followed, tare_error *error);
tare_status check_highlights(const struct ifeval_case *c, bool *followed, tare_error *error);
tare_status check_sections(const struct ifeval_case *c, bool *followed, tare_error *error);
tare_status check_title(const struct ifeval_case *c, bool *followed, tare_error *error);
tare_status check_two_responses(const struct ifeval_case *c, bool *followed, tare_error *error);
tare_status check_quotation(const struct ifeval_case *c, bool *followed, tare_error *error);
tare_status check_json(const struct ifeval_case *c, bool *followed, tare_error *error);

/* ---- language.c */
tare_status check_language(const struct ifeval_case *c, bool *followed, tare_error *error);
/* Returns whether most letters are Latin. */
bool looks_english(tare_text t);

/* ---- unicode.c: character classes of Python's str */
/* Returns the character at *at and advances; -1 for an invalid byte. */
int32_t char_next(tare_text t, int64_t *at);
bool char_is_space(int32_t c);
bool char_is_word(int32_t c); /* \w */
/* 1: upper case; -1: lower or title case; 0: neither */
int char_case(int32_t c);
tare_text uni_trim(tare_text t);
/* Replaces invalid UTF-8 by U+FFFD, in allocated memory (free data); data NULL: no memory. */
tare_text uni_valid(tare_text t);
/* Returns the text in lower case, in allocated memory (free data); data NULL: no memory. */
tare_text uni_lower(tare_text t);

#endif
