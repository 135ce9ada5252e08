/* Words that announce an answer, in one table for all languages: "answer", "Antwort", "réponse",
 * "答案". Pure functions; each looks at the position i of t only. */
#ifndef TARE_VERIFIERS_ANCHORS_H
#define TARE_VERIFIERS_ANCHORS_H

#include <stdbool.h>
#include <stdint.h>
#include <tare/plugin.h>

enum anchor_kind {
    ANCHOR_NOUN,   /* answer, Antwort, réponse, ответ, 答案 */
    ANCHOR_OPTION, /* option, choice, Option, вариант, 选项 */
    ANCHOR_LINK,   /* is, ist, est, lautet, 是 */
    ANCHOR_DENIAL, /* not, nicht, pas, falsch, 不是 */
    ANCHOR_PICK,   /* select, wähle, choisis, 选 */
    ANCHOR_RIGHT,  /* correct, richtig, correcte, 正确 */
    ANCHOR_SO,     /* so, also, donc, поэтому, 所以 */
    ANCHOR_MAYBE,  /* perhaps, vielleicht, pourrait, 可能是; not in English, whose doubts are read by the verifiers */
    ANCHOR_BOUND,  /* in front of a number that is only a bound: más de, mindestens, 超过; not in English either */
    ANCHOR_OR,     /* and, or: oder, et, y, 或者 */
};

/* A set of languages, one bit each; English is ANCHOR_ENGLISH. */
#define ANCHOR_ENGLISH UINT64_C(1)
#define ANCHOR_ANY UINT64_MAX

/* Returns the size of the word of that kind that begins at i; 0: none. Case is ignored (Latin, Greek
 * and Cyrillic letters). In scripts with blanks it must be a whole word. The longest word counts.
 * *languages: the languages to look in; on success those that have the word, so that a denial can
 * be looked for in the language of its noun. */
int64_t anchor_at(tare_text t, int64_t i, enum anchor_kind kind, uint64_t *languages);

/* Returns whether t contains such a word. *languages: those of the last one. */
bool anchor_in(tare_text t, enum anchor_kind kind, uint64_t *languages);

/* Returns whether the letter at i belongs to a script that is written without blanks between words
 * (Han, kana, Thai), or whose particles are attached (Hangul). */
bool anchor_unspaced(tare_text t, int64_t i);

#endif
