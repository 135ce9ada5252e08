/* Whether a sentence claims one of its options as the answer. A claim is an option behind a noun and a link ("the answer is B", "Antwort: B"), behind a verb of
 * choice ("I would pick B"), in front of a predicate ("B is correct"), or behind a word of
 * conclusion ("So B."). Words in front of it that deny, report or imagine, and a denial behind it,
 * make it none. */
#include "claim.h"
#include "common/words/sentences.h"

#include <string.h>

enum { MAX_DOUBT = 60 }; /* tokens in front of a claim that may deny it */

static const char NOUNS[] = "answer|ans|choice|option|selection|prediction|response|conclusion|verdict|result|solution|pick|guess|"
                            "decision|letter|key|selected|chosen|alternative|one|final|statement|match|answer's|bet|vote|fit";
static const char FILLERS[] =
    "the|option|choice|letter|answer|statement|alternative|clearly|definitely|indeed|therefore|thus|most|likely|probably|obviously|certainly|simply|just|then|correct|correctly|best|number|still|actually|also|both|only|called|labeled|labelled|ultimately|hence|either|really|my|final|response|be|la|le|el|die|der|das|den|lo|il|l|a|o|de|het|likely|closest|marked|this|that";
const char LINKS[] = "is|was|be|equals|it's|that's|answer's|remains|becomes|are|were|this's|gives|get|indicates";
static const char SURE[] = "must|should|would|will|to|can|only"; /* in front of "be" */

/* ---------------------------------------------------------------- claims of an option */

/* Returns the last token before the fillers and brackets in front of k. *noun: they contain a noun
 * ("option B"). */
int before_fillers(const struct sentence *s, int k, bool *noun)
{
    int j = k - 1;
    for (; j >= 0; j--) {
        if (token_mark(s, j, "(")) continue;
        if ((token_is(s, j, "fact") && token_is(s, j - 1, "in")) || (token_is(s, j, "course") && token_is(s, j - 1, "of"))) {
            j--;
            continue;
        }
        if (!token_is(s, j, FILLERS) && !(s->token[j].kind == T_WORD && has_any(s, j, ANCHOR_OPTION))) break;
        if (token_is(s, j, "be") || (token_is(s, j, "answer|response") && token_is(s, j - 1, "i|would|i'd|i'll|we|will"))) break;
        if (token_is(s, j, "this|that") && !token_is(s, j + 1, "option|choice|statement|answer")) break;
        *noun |= token_is(s, j, "option|choice|letter|answer|statement|response") || has_any(s, j, ANCHOR_OPTION);
    }
    return j;
}

/* Returns whether a noun stands in the clause before token k. */
bool has_noun(const struct sentence *s, int k, int near)
{
    for (int i = k - 1; i >= 0 && i >= k - near; i--) {
        if (token_mark(s, i, ",;>?") || token_is(s, i, "which|because|since|whose")) return false;
        if (token_is(s, i, NOUNS) || has_any(s, i, ANCHOR_NOUN)) return true;
    }
    return false;
}

/* Returns whether the clause ends behind token k: nothing, a comma, or a reason follows. */
static bool ends_clause(const struct sentence *s, int k)
{
    int i = k + 1;
    while (token_mark(s, i, ")]")) i++;
    return i >= s->n || token_mark(s, i, ",.;:-(>!\n") ||
           token_is(
               s, i,
               "because|since|as|for|due|given|here|not|rather|instead|and|that|which|if|to|this|by|from|then|too|it|with|based|on|indeed");
}

static bool is_subject_pronoun(const struct sentence *s, int begin, int i)
{
    while (
        begin < i &&
        (token_is(
             s, begin,
             "so|and|then|but|well|ok|okay|hmm|actually|no|wait|yes|i|think|believe|guess|in|fact|conclusion|therefore|"
             "thus|hence|now|clearly|rather|oh|sorry|correction|instead|say|would|that|really|overall|i'm|am|fairly|pretty|quite|very|"
             "confident|sure|certain|positive") ||
         token_mark(s, begin, ",:-.\n(")))
        begin++;
    return begin == i;
}

/* "... is B": what is in front of the link at j? */
enum strength behind_link(const struct sentence *s, int j, int k)
{
    int i = j - 1;
    if (token_is(s, j, "gives|get|indicates|becomes|remains"))
        return has_noun(s, j, NEAR) && token_is(s, j, "becomes|remains") ? FULL_CLAIM : NO_CLAIM;
    if (token_is(s, j, "it's|that's"))
        return is_subject_pronoun(s, clause_begin(s, j), j) && ends_clause(s, k) ? WEAK_CLAIM : NO_CLAIM;
    if (token_is(s, j, "answer's")) return FULL_CLAIM;
    bool should = false;
    if (token_is(s, j, "be")) {
        if (!token_is(s, i, SURE)) return NO_CLAIM;
        should = token_is(s, i, "should|must");
        for (i--; token_is(s, i, "has|have|ought|is|needs|going|only|therefore|then|clearly");) i--;
    }
    while (token_is(s, i, "therefore|then|thus|clearly|here|hence|also|now|itself|indeed")) i--;
    if (token_is(s, i, "it|that|this") && is_subject_pronoun(s, clause_begin(s, i), i)) {
        return !ends_clause(s, k) ? NO_CLAIM : should ? FULL_CLAIM : WEAK_CLAIM;
    }
    if (has_noun(s, j, CLAUSE)) return FULL_CLAIM;
    if (!token_mark(s, i, ",")) return NO_CLAIM;
    for (int m = i - 1; m > 0 && m > i - NEAR; m--) /* "the answer, I think, is B" */
        if (token_mark(s, m, ",")) return has_noun(s, m, 4) ? FULL_CLAIM : NO_CLAIM;
    return NO_CLAIM;
}

/* Returns whether the token at j is a verb that chooses, with its subject. */
bool is_pick(const struct sentence *s, int j)
{
    int i = j;
    if (token_is(s, j, "with|for|on|towards|toward|to")) {
        i = j - 1;
        if (!token_is(s, i,
                      "go|going|went|stick|sticking|opt|opting|vote|settle|lean|leaning|decide|decided|settled|stay|opted|voting"))
            return false;
    } else if (
        !token_is(
            s, j,
            "pick|choose|select|chose|picked|selected|choosing|picking|selecting|say|conclude|answer|mark|submit|guess|choosing|response")) {
        return false;
    }
    if (i == 0 || (token_mark(s, i - 1, ",;>:\n") && token_is(s, i, "choose|select|pick|choosing|selecting|picking|going|go")))
        return true;
    for (int n = 1; n < 6 && i - n >= 0; n++)
        if (token_is(s, i - n, "i|we|i'd|i'll|we'd|we'll|let's|me|us|i'm|we're|i've|should|must|my|you")) return true;
    return false;
}

/* "Answer B", "So, option B", "→ B". */
static enum strength concludes(const struct sentence *s, int j, int k, bool noun)
{
    if (!ends_clause(s, k) || token_mark(s, k + 1, ":")) return NO_CLAIM; /* a label: "Option A: w" */
    if (token_mark(s, j, ",") &&
        token_is(
            s, j - 1,
            "so|thus|hence|therefore|then|conclusion|summary|overall|finally|answer|short|ultimately|consequently|accordingly"))
        return WEAK_CLAIM;
    if (token_mark(s, j, ">") || token_is(s, j, "so|thus|hence|therefore|ergo|consequently")) return WEAK_CLAIM;
    if (token_mark(s, j, ",;")) /* "The passage says so, therefore (B)." */
        for (int m = j + 1; m < k; m++)
            if (token_is(s, m, "therefore|thus|hence")) return WEAK_CLAIM;
    int i = j;
    while (
        i >= 0 &&
        (token_mark(s, i, ",:-.\n>#") ||
         token_is(
             s, i,
             "so|and|then|but|well|ok|okay|hmm|actually|no|wait|yes|therefore|thus|hence|it|is|be|oh|sorry|correction|instead|rather|oops")))
        i--;
    if (i >= 0 && !token_is(s, j, "is|be") && token_mark(s, j, ",:-")) { /* "After checking each option, B." */
        const int first = s->token[0].kind == T_MARK ? 1 : 0;
        const bool led = token_is(
            s, first,
            "after|based|given|looking|considering|since|because|as|from|by|with|according|of|among|thinking|comparing|using|upon|having");
        return led && token_mark(s, j, ",") && k + 2 >= s->n ? WEAK_CLAIM : NO_CLAIM;
    }
    if (i >= 0) return NO_CLAIM;
    for (int m = j + 1; m < k; m++) /* "Hence (B)" */
        if (token_is(s, m, "therefore|thus|hence|clearly|definitely|certainly|obviously|probably|likely|ultimately"))
            return WEAK_CLAIM;
    int r = k + 1; /* "B, because A is too cold" */
    while (token_mark(s, r, "),-.")) r++;
    if (token_is(s, r, "because|since|as|for|not|rather|instead") || (token_mark(s, r - 1, "-") && token_is(s, r, "it|this|that")))
        return token_is(s, r, "as") && token_is(s, r + 1, "well") ? NO_CLAIM : WEAK_CLAIM;
    for (int m = 0; m <= j; m++) noun |= s->token[m].kind == T_WORD;
    return noun ? WEAK_CLAIM : NO_CLAIM; /* "- A" is an item of a list */
}

/* Returns whether the words in front of token i deny what it announces: "je ne choisis pas la
 * réponse", "das ist nicht Antwort". */
static bool is_refused_abroad(const struct sentence *s, int i, uint64_t languages)
{
    for (int m = i - 1; m >= 0 && m > i - NEAR && !token_mark(s, m, ",;:.-\n") && !token_is(s, m, "que|dass|che"); m--) {
        uint64_t same = languages;
        if (has_anchor(s, m, ANCHOR_DENIAL, &same)) return true;
    }
    return false;
}

/* "Richtig ist B", "La correcta es la B", "C'est B". */
static bool is_right_abroad(const struct sentence *s, int k)
{
    bool noun = false;
    const int j = before_fillers(s, k, &noun);
    uint64_t languages = ANCHOR_ANY ^ ANCHOR_ENGLISH;
    int i = j - 2;
    if (token_is(s, j, "c'est"))
        i = j - 1;
    else if (j < 1 || !has_anchor(s, j, ANCHOR_LINK, &languages) || !has_anchor(s, j - 1, ANCHOR_RIGHT, &languages))
        return false;
    while (token_is(s, i, FILLERS)) i--;
    return i < 0 || token_mark(s, i, ",;:.\n") || has_any(s, i, ANCHOR_SO);
}

/* A noun of another language in front of the option, or a verb that picks. */
static enum strength abroad(const struct sentence *s, int k)
{
    for (int i = k - 1; i >= 0 && i >= k - CLAUSE; i--) {
        if (token_mark(s, i, ";?>")) return NO_CLAIM;
        uint64_t languages = ANCHOR_ANY ^ ANCHOR_ENGLISH;
        const bool noun = has_anchor(s, i, ANCHOR_NOUN, &languages);
        bool pick = false;
        if (!noun) {
            languages = ANCHOR_ANY ^ ANCHOR_ENGLISH;
            pick = has_anchor(s, i, ANCHOR_PICK, &languages) && i >= k - 4;
        }
        bool right = false;
        if (!noun && !pick) {
            languages = ANCHOR_ANY ^ ANCHOR_ENGLISH;
            const bool option = has_anchor(s, i, ANCHOR_OPTION, &languages);
            for (int m = i - 2; option && m < k; m++) {
                uint64_t same = languages;
                right |= has_anchor(s, m, ANCHOR_RIGHT, &same);
            }
            right |= option && token_mark(s, i + 1, ":") && i + 4 >= k;
        }
        if (!noun && !pick && !right) continue;
        if (is_refused_abroad(s, i, languages)) return NO_CLAIM;
        for (int m = i; m < k + 3 && m < s->n; m++) { /* denied or doubted in the same language, before or right behind it */
            uint64_t same = languages, maybe = languages;
            if (m > k && (token_mark(s, m, ",;.") || token_joins(s, m))) break;
            if (m != k && (has_anchor(s, m, ANCHOR_DENIAL, &same) || has_anchor(s, m, ANCHOR_MAYBE, &maybe))) return NO_CLAIM;
        }
        for (int m = i; m < k; m++)
            if (token_mark(s, m, ",") || (s->token[m].kind == T_OPTION && m < k - 1)) return NO_CLAIM;
        return FULL_CLAIM;
    }
    return NO_CLAIM;
}

/* "corresponds to option C", "i.e. choice C", "That leaves option C": the value, then its option. */
static bool is_matched(const struct sentence *s, int j)
{
    if (token_is(s, j, "matches|match|matching|leaves|leaving|namely|making|ie|equals|chooses|choosing|selects|means")) return true;
    if (token_mark(s, j, ".,") && token_is(s, j - 1, "e") && token_is(s, j - 3, "i")) return true;
    if (token_mark(s, j, ",.") && token_mark(s, j - 1, ".") && token_is(s, j - 2, "e")) return true;
    return token_is(s, j, "to|with") && token_is(s, j - 1,
                                                 "corresponds|correspond|corresponding|agrees|agree|points|pointing|leads|leading|"
                                                 "consistent|equal|matches|belongs");
}

/* What remains where the others are wrong: "That leaves C", "which leaves us with C". */
static bool is_left(const struct sentence *s, int j)
{
    if (token_is(s, j, "with")) j -= 1 + token_is(s, j - 1, "us|me");
    if (token_is(s, j, "leaving")) return true;
    return token_is(s, j, "leaves") && token_is(s, j - 1, "that|this|which|elimination|it|only");
}

/* Returns whether nothing but marks follows from token i on. */
static bool ends_text(const struct sentence *s, int i)
{
    while (i < s->n && s->token[i].kind == T_MARK && s->token[i].mark != '?') i++;
    return i >= s->n;
}

/* Returns whether the sentence states a value up to token j: "the diagnosis is gout". */
static bool states_value(const struct sentence *s, int j)
{
    for (int i = 1; i < j; i++)
        if (token_is(s, i, "is|was|are|equals|be|gives") || token_mark(s, i, "=")) return true;
    return false;
}

static enum strength claimed_in_front(const struct sentence *s, int k)
{
    bool noun = false;
    const int j = before_fillers(s, k, &noun);
    if (abroad(s, k) || is_right_abroad(s, k)) return FULL_CLAIM;
    if (token_mark(s, j, "#")) return FULL_CLAIM;
    if (token_mark(s, j, ".") && token_is(s, j - 1, "ans|opt|rpta|resp|odp")) return FULL_CLAIM;
    if (token_mark(s, j, ":=-\n>")) {
        int m = j;
        while (token_mark(s, m, ":=-\n>.)") && j - m < NEAR) m--;
        const bool tight = token_mark(s, j, "-=") && !token_mark(s, j - 1, ":");
        if (has_noun(s, m + 1, tight ? 3 : 10) || token_is(s, m, "is|correct|sol|right")) return FULL_CLAIM;
        if (m == 0 && s->token[0].kind == T_OPTION && s->token[0].letter == 'A' && token_mark(s, 1, ":") && k == s->n - 1)
            return FULL_CLAIM; /* "A: B", behind "Q:" */
        if (token_is(s, m, "therefore|so|thus|hence|conclusion|summary|final|finally|therefore")) return WEAK_CLAIM;
        return concludes(s, j, k, noun);
    }
    if (token_is(s, j, LINKS)) {
        const enum strength link = behind_link(s, j, k);
        return link ? link : concludes(s, j, k, noun);
    }
    if (is_pick(s, j)) return FULL_CLAIM;
    if (token_is(s, j, "think|believe|guess|reckon|suspect") && token_is(s, j - 1, "i|we|i'd|would") && ends_clause(s, k))
        return FULL_CLAIM;
    if ((noun ? is_matched(s, j) : is_left(s, j)) && ends_clause(s, k)) return WEAK_CLAIM;
    if (noun && token_mark(s, j + 1, "(") && k + 1 < s->n && token_mark(s, k + 1, ")") && ends_text(s, k + 2) && states_value(s, j))
        return WEAK_CLAIM; /* "The diagnosis is gout (option B)." */
    if (noun && token_is(s, j + 1, "answer|response|my|final|the") && has_noun(s, k, 4) && ends_clause(s, k) &&
        (j < 0 || token_mark(s, j, ",\n") || token_is(s, j, "so|of|as")))
        for (int i = j + 1; i < k; i++)
            if (token_is(s, i, "answer|response")) return FULL_CLAIM;
    if (token_is(s, j, "of|as") && has_noun(s, j, 3)) return FULL_CLAIM;
    return concludes(s, j, k, noun);
}

/* "B is correct", "option B fits best". */
static bool called_right(const struct sentence *s, int k)
{
    static const char GOOD[] =
        "correct|right|best|answer|valid|suitable|appropriate|accurate|fit|choice|option|true|preferable|closest|likely|"
        "one|correctly|solution|reasonable|accurately|logical|only|winner|match|most";
    bool noun = false;
    const int j = before_fillers(s, k, &noun);
    if (j >= 0 && !token_mark(s, j, ",;:>\n-.#") &&
        !token_is(s, j, "that|so|therefore|thus|hence|think|believe|say|conclude|and|then|only|but|however|case|is|because|since"))
        return false;
    int r = k + 1;
    while (token_mark(s, r, ")].")) r++;
    if (token_mark(s, r, "(") || token_mark(s, r, ",")) { /* B (the sun) is */
        const char close = s->token[r].mark == '(' ? ')' : ',';
        int m = r + 1;
        while (m < s->n && m < r + 10 && !(s->token[m].kind == T_MARK && s->token[m].mark == close)) m++;
        if (m < s->n && m < r + 10)
            r = m + 1;
        else if (close == ',' && noun)
            r++; /* "Rome, option B, is" */
    }
    if (token_is(s, r, "it") && token_is(s, r + 1, "is") && ends_clause(s, r + 1)) return true;
    for (int m = k + 1; m < k + 4 && m < s->n && !token_mark(s, m, ",;"); m++) {
        uint64_t languages = ANCHOR_ANY ^ ANCHOR_ENGLISH, same;
        if (!has_anchor(s, m, ANCHOR_RIGHT, &languages)) continue;
        if (token_is(s, r, "is|was|would|should|must|seems|looks") && token_is(s, m, "correct|right")) continue; /* English */
        for (int d = k + 1; d < m + 2; d++)
            if (same = languages, has_anchor(s, d, ANCHOR_DENIAL, &same)) return false;
        return true;
    }
    if (token_is(s, r, "fits|matches|works")) return !token_is(s, r + 1, "only|if|poorly");
    if (token_is(s, r, "best|correctly|accurately"))
        return token_is(s, r + 1, "fits|matches|describes|explains|answers|represents|completes|captures|reflects");
    if (token_is(s, r, "describes|explains|answers|satisfies|represents|captures"))
        for (int m = r + 1; m < r + 5; m++)
            if (token_is(s, m, "best|correctly|accurately")) return true;
    if (token_is(s, j, "only") || (token_is(s, j + 1, "only") && j + 1 < k)) /* "only A satisfies both" */
        if (token_is(
                s, r,
                "satisfies|meets|fulfills|fulfils|remains|holds|applies|does|has|gives|agrees|survives|describes|explains|contains|shows"))
            return !token_is(s, r + 1, "not|n't|neither|no");
    if (token_is(s, r, "makes")) return token_is(s, r + 1, "the|most|sense");
    if (!token_is(s, r, "is|was|seems|appears|looks|must|should|would|has|remains|can")) return false;
    const bool there = token_is(s, j, "is|there") && token_is(s, j - 1, "there");
    if (there) return false;
    for (int m = r + 1; m < s->n && m < r + 8; m++) {
        if (token_mark(s, m, ",;:.") || token_is(s, m, "because|since|which|if|than|when|but")) return false;
        if (token_is(s, m, "to") && !token_is(s, m + 1, "be")) return false;
        if (token_is(s, m, "not|never|wrong|incorrect|a|an|less|least|hardly|n't")) return false;
        if (!token_is(s, m, GOOD) || (token_is(s, m, "most|likely|only") && m + 1 >= s->n)) continue;
        if (token_is(s, m, "one") && !token_is(s, m - 1, "the")) return false;
        for (int d = m + 1; d < s->n && d < m + 4; d++) /* "C would be right if it rained", "only for France" */
            if (token_is(s, d, "if|unless|only|when") || (token_is(s, r, "would") && token_is(s, d, "for|in"))) return false;
        return true;
    }
    return false;
}

/* "The best one is option C": a link with a noun behind it, whatever is in front. */
static bool is_named_option(const struct sentence *s, int k)
{
    bool noun = false;
    const int j = before_fillers(s, k, &noun);
    return noun && token_is(s, j, "is") && !token_is(s, j - 1, "there|this|it|that|which|what|here") && ends_clause(s, k);
}

enum strength option_claimed(const struct sentence *s, int k)
{
    enum strength claim = claimed_in_front(s, k);
    if (claim != FULL_CLAIM && (called_right(s, k) || is_named_option(s, k))) claim = FULL_CLAIM;
    if (!claim) return NO_CLAIM;
    int begin = clause_begin(s, k);
    /* the noun may be behind a comma: "The answer, as shown, is B" */
    while (
        begin > 0 && token_mark(s, begin - 1, ",>#") && begin >= k - 3 && k > begin && !has_noun(s, k, k - begin) &&
        !token_is(
            s, begin,
            "it|that|it's|that's|this|leaving|which|so|therefore|i|we|then|hence|thus|choose|pick|select|i'd|i'll|we'd|we'll|let's|i'm") &&
        !token_is(s, begin - 2, DISCOURSE))
        begin = clause_begin(s, begin - 1);
    bool noun = false;
    const int j = before_fillers(s, k, &noun);
    if (noun && token_is(s, j, "and|while") && called_right(s, k)) begin = j + 1; /* "C is wrong and option A is correct" */
    if (begin < k - MAX_DOUBT) begin = k - MAX_DOUBT;
    const int64_t at = s->token[k].t.data - s->t.data;
    if (at >= 0 && at < s->t.size && sentence_quotes(s->t, 0, at, at + s->token[k].t.size)) return NO_CLAIM;
    if (is_doubted(s, begin, k) || is_imagined(s, k) || is_denied_behind(s, k) || is_hedged_behind(s, k)) return NO_CLAIM;
    return claim;
}
