/* Internal to the choice verifier: the words around an option. Tokens are numbered from 0 in their
 * sentence; numbers outside of it are no token. */
#ifndef TARE_CHOICE_CLAIM_H
#define TARE_CHOICE_CLAIM_H

#include "choice.h"
#include "common/words/anchors.h"

enum { CLAUSE = 14, NEAR = 8 }; /* tokens looked at in front of an option */
enum strength { NO_CLAIM, WEAK_CLAIM, FULL_CLAIM };

extern const char DISCOURSE[], LINKS[]; /* lists of words for token_is */

/* ---------------------------------------------------------------- doubt.c */

/* Returns whether the token has a word of the kind, in any of the languages (anchors.h). */
bool has_anchor(const struct sentence *s, int i, enum anchor_kind kind, uint64_t *languages);
/* Returns whether the token is "and" or "or" in another language, and nothing else. */
bool token_joins(const struct sentence *s, int i);
bool has_any(const struct sentence *s, int i, enum anchor_kind kind);
/* Returns the first token of the clause of token k. */
int clause_begin(const struct sentence *s, int k);
/* Returns whether words of [begin, end) deny, report or imagine what follows them. */
bool is_doubted(const struct sentence *s, int begin, int end);
/* Returns whether the sentence opens with a condition that no word of conclusion ends before k. */
bool is_imagined(const struct sentence *s, int k);
/* Returns whether the words behind token k call it wrong: ", which is wrong", "is not right". */
bool is_denied_behind(const struct sentence *s, int k);
bool is_hedged_behind(const struct sentence *s, int k);
/* Returns whether another option is joined to the one at k: "A or C", "A C", "A (w), B (x)". */
bool names_second(const struct sentence *s, int k);
bool names_earlier(const struct sentence *s, int k);
/* Returns whether the line from i on, behind option `first`, labels another: ". w and C. y". */
bool labels_second(const struct options *o, tare_text t, int64_t i, char first);

/* ---------------------------------------------------------------- claim.c */

/* Returns the last token before the fillers and brackets in front of k. *noun: they contain a noun
 * ("option B"). */
int before_fillers(const struct sentence *s, int k, bool *noun);
/* Returns whether a noun that announces an answer stands in the clause before token k. */
bool has_noun(const struct sentence *s, int k, int near);
/* Returns how well the link at token j announces what begins at token k. */
enum strength behind_link(const struct sentence *s, int j, int k);
/* Returns whether the token at j is a verb that chooses, with its subject. */
bool is_pick(const struct sentence *s, int j);
enum strength option_claimed(const struct sentence *s, int k);

#endif
