/* Words around a claim that deny, report, imagine or hedge it, and further options joined to it. */
#include "claim.h"

#include <string.h>

const char DISCOURSE[] = "so|and|then|but|well|ok|okay|hmm|hm|actually|no|wait|yes|oh|sorry|correction|oops|rather|instead|however|"
                         "now|therefore|thus|hence|scratch|though|yet|although";

/* ---------------------------------------------------------------- words around */

/* Returns whether the token has a word of the kind, in any of the languages. */
bool has_anchor(const struct sentence *s, int i, enum anchor_kind kind, uint64_t *languages)
{
    if (i < 0 || i >= s->n || (s->token[i].kind != T_WORD && s->token[i].kind != T_SCRIPT)) return false;
    const tare_text w = s->token[i].t;
    if (s->token[i].kind == T_SCRIPT) return anchor_in(w, kind, languages);
    const int64_t at = w.data - s->t.data;
    return at >= 0 && at < s->t.size ? anchor_at(s->t, at, kind, languages) > 0 : anchor_at(w, 0, kind, languages) > 0;
}

bool has_any(const struct sentence *s, int i, enum anchor_kind kind)
{
    uint64_t any = ANCHOR_ANY;
    return has_anchor(s, i, kind, &any);
}

/* Returns the first token of the clause of token k. A word of conclusion begins one, and so does a
 * comma. */
int clause_begin(const struct sentence *s, int k)
{
    for (int i = k - 1; i >= 0; i--)
        if (token_mark(s, i, ",;>#") || token_is(s, i, "so|therefore|thus|hence|then|means|implies|conclude|concludes|shows"))
            return i + 1;
    return 0;
}

/* Returns whether words of [begin, end) deny, report, or imagine what follows them. */
bool is_doubted(const struct sentence *s, int begin, int end)
{
    static const char words[] =
        "not|isn't|wasn't|aren't|cannot|can't|couldn't|wouldn't|shouldn't|don't|doesn't|didn't|never|neither|nor|none|no|wrong|incorrect|"
        "incorrectly|false|mistake|mistakenly|mistaken|mistook|error|tempting|tempted|trap|distractor|might|could|may|perhaps|maybe|possibly|"
        "whether|unless|says|said|say's|claims|claimed|claim|argues|argued|argue|thought|thinks|believed|believes|assumed|assumes|"
        "previous|previously|initial|initially|earlier|originally|former|if|suppose|supposing|assume|assuming|"
        "imagine|doubt|unlikely|hardly|wish|isnt|ruled|except|"
        "anything|old|unsure|uncertain|pretend|misread|guessed|naive|naively|nobody|hypothetically";
    static const char others[] =
        "people|students|student|someone|somebody|others|he|she|they|one|some|many|most|everyone|user|you|friend|author|teacher";
    static const char reports[] =
        "say|think|believe|answer|choose|pick|select|guess|would|will|suggest|argue|assume|chose|picked|selected|wrote|answered|might";
    while (begin < end &&
           (token_mark(s, begin, ",:-.\n") ||
            (token_is(s, begin, DISCOURSE) && !(token_is(s, begin, "no") && token_is(s, begin + 1, "way|chance|reason")))))
        begin++;
    for (int i = begin; i < end; i++) {
        const bool doubt = token_is(s, i, "no") && token_is(s, i + 1, "doubt|question");
        if (doubt) {
            i++;
            continue;
        }
        if (token_is(s, i, words)) return true;
        if (token_is(s, i, others) && token_is(s, i + 1, reports)) return true;
        if (token_is(s, i, "at") && token_is(s, i + 1, "first")) return true;
    }
    return false;
}

/* Returns whether the sentence opens with a condition that no word of conclusion ends before k. */
bool is_imagined(const struct sentence *s, int k)
{
    int i = 0;
    for (int m = 0; m + 2 < k; m++) /* "if I had to choose" */
        if (token_is(s, m, "if") && token_is(s, m + 1, "i|we") && token_is(s, m + 2, "had|have|must|were")) return false;
    while (i < k && (s->token[i].kind == T_MARK || token_is(s, i, "so|and|now|then|let|us|let's|even|only|as"))) i++;
    if (!token_is(s, i, "if|suppose|supposing|assume|assuming|unless|imagine|had|pretend|consider|say")) return false;
    for (i++; i < k; i++)
        if (token_is(s, i, "so|therefore|thus|hence|means|conclude") || token_mark(s, i, ">")) return false;
    return true;
}

/* Returns whether the words behind token k call it wrong, or take it back: ", which is wrong", "is
 * not right", ", I thought at first". */
bool is_denied_behind(const struct sentence *s, int k)
{
    int i = k + 1;
    while (token_mark(s, i, ")],-.(")) i++;
    if (token_is(s, i, "which|that|this|it|and")) i++;
    if (token_is(s, i, "at") && token_is(s, i + 1, "first")) return true;
    if (token_is(s, i, "said|says|claimed|replied|wrote|thought|argued|cried")) return true; /* ", said Tom" */
    if (token_is(s, i, "i|we|i'd|some|people") &&
        (token_is(s, i + 1, "thought|initially|first|assumed|guessed") || token_is(s, i + 1, "had")))
        return true;
    if (token_is(s, i, "isn't|wasn't|doesn't|fails|can't|cannot|wrong|incorrect|false|won't")) return true;
    if (!token_is(s, i, "is|was|would|does|looks|seems|be|are|to")) return false;
    for (int j = i + 1; j < s->n && j < i + 6 && !token_mark(s, j, ",;:."); j++) {
        if (token_is(s, j, "because|since|as|for")) return false;
        if (token_is(
                s, j,
                "not|wrong|incorrect|false|tempting|mistake|trap|error|distractor|impossible|misleading|never|invalid|too|also")) {
            if (token_is(s, j, "not") && token_is(s, j + 1, "only")) return false;
            return !token_is(s, j, "also|too") || token_is(s, j, "too");
        }
    }
    return false;
}

bool is_hedged_behind(const struct sentence *s, int k)
{
    int i = k + 1;
    while (token_mark(s, i, ")],")) i++;
    if (token_is(s, i, "only")) i++;
    if (token_is(s, i, "unless")) return true;
    return token_is(s, i, "if") && !(token_is(s, i + 1, "i|we|forced") || token_is(s, i + 2, "had|have|must"));
}

/* ---------------------------------------------------------------- several options */

bool token_joins(const struct sentence *s, int i)
{
    uint64_t any = ANCHOR_ANY;
    const tare_text w = s->token[i].t;
    return (s->token[i].kind == T_WORD || s->token[i].kind == T_SCRIPT) && anchor_at(w, 0, ANCHOR_OR, &any) == w.size;
}

/* Returns whether a list of another language has an option before the one at k: "A、B都对",
 * "A und B". */
bool names_earlier(const struct sentence *s, int k)
{
    const bool list = k > 1 && s->token[k - 1].kind == T_MARK && text_equal(s->token[k - 1].t, text_of("\xE3\x80\x81"), false);
    return k > 1 && (list || token_joins(s, k - 1)) && s->token[k - 2].kind == T_OPTION &&
           s->token[k - 2].letter != s->token[k].letter;
}

/* Returns whether another option is joined to the one at k: "A or C", "A C", "A (w), B (x)". */
bool names_second(const struct sentence *s, int k)
{
    static const char STOPS[] =
        "not|rather|instead|because|since|for|while|whereas|unlike|than|over|when|which|due|given|where|with|if|so|"
        "although|though|is|was|are|isn't|does|has|would|who|that|by|from|but|based|without|it|i|we|they|this|here|"
        "out|among|of|on|in|at|to|says|states|being";
    static const char JOINS[] =
        "and|or|plus|also|possibly|maybe|perhaps|both|either|nor|then|option|options|choice|choices|answer|answers|even";
    bool joined = true, text = false, inside = false;
    for (int i = k + 1; i < s->n; i++) {
        const struct token *t = &s->token[i];
        if (t->kind == T_OPTION) {
            if (inside) continue;
            if (joined && (!text || t->marked)) return t->letter != s->token[k].letter;
            return false;
        }
        if (t->kind == T_MARK) {
            if (strchr("?", t->mark)) return false;
            inside = t->mark == '('   ? !(i + 2 < s->n && s->token[i + 1].kind == T_OPTION && token_mark(s, i + 2, ")"))
                     : t->mark == ')' ? false
                                      : inside;
            if (strchr("-.:#>", t->mark) && t->mark != '.') joined = joined && t->mark == ':';
            joined |= strchr(",;/|&+", t->mark) != NULL;
            continue;
        }
        if (inside) continue;
        if (token_is(s, i, "as") && token_is(s, i + 1, "well") && token_is(s, i + 2, "as")) {
            joined = true;
            i += 2;
            continue;
        }
        if (token_is(s, i, "as") || token_is(s, i, STOPS)) return false;
        if (token_is(s, i, JOINS)) {
            joined = true;
            continue;
        }
        if (token_joins(s, i)) {
            joined = true;
            continue;
        }
        if (t->kind == T_SCRIPT && !(anchor_unspaced(t->t, 0) && t->t.size <= 3)) return false;
        text = t->kind != T_SCRIPT;
        joined = t->kind == T_SCRIPT;
    }
    return token_is(s, s->n - 1, "and|or"); /* cut before the second one */
}

/* "Answer: A. w and C. y": the line behind the sentence names another option in the same way. */
bool labels_second(const struct options *o, tare_text t, int64_t i, char first)
{
    if (i >= t.size || t.data[i] != '.') return false;
    for (int64_t far = i + 200; i + 2 < t.size && i < far && t.data[i] != '\n'; i++) {
        const char c = t.data[i + 1];
        if (t.data[i] != ' ' || !option_has(o, c) || c == first || !strchr(".)", t.data[i + 2])) continue;
        if (i + 3 < t.size && t.data[i + 3] != ' ') continue;
        if ((i > 3 && text_starts(t, i - 3, "and", true)) || (i > 2 && text_starts(t, i - 2, "or", true)) || t.data[i - 1] == ',' ||
            t.data[i - 1] == ';')
            return true;
    }
    return false;
}
