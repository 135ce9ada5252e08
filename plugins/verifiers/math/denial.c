/* Decides whether a text denies the answer taken from it: "It cannot be 5", "anything but 5", "5,
 * which is wrong". Only words that govern the answer count: in "the number of primes not above 10
 * is 4" the "not" does not. */
#include "prose.h"

#include <string.h>

enum { WORDS = 8, FAR = 96 };

static bool ends_with(tare_text t, const char *end)
{
    const int64_t n = (int64_t)strlen(end);
    return t.size >= n && !memcmp(t.data + t.size - n, end, (size_t)n);
}

static bool takes_out(enum role role)
{
    return role == ROLE_NOT || role == ROLE_FALSE || role == ROLE_EXCEPT;
}

/* Reads the words of t, at most WORDS of them, the first or the last ones, up to a mark that ends a
 * clause or a digit. Returns their number. */
static int words_after(tare_text t, int64_t i, tare_text *words, bool *comma)
{
    const int64_t far = i + FAR < t.size ? i + FAR : t.size;
    int n = 0;
    *comma = false;
    while (i < far && n < WORDS && !strchr(".;!?\n", t.data[i]) && !text_is_digit(t.data[i])) {
        const int64_t from = i;
        while (i < far && (text_is_letter(t.data[i]) || (i > from && t.data[i] == '\''))) i++;
        if (i > from) words[n++] = text_slice(t, from, i);
        if (i > from) continue;
        if (t.data[i] == ',') {
            if (n) break;
            *comma = true;
        }
        i++;
    }
    return n;
}

static int words_before(tare_text t, int64_t i, tare_text *words)
{
    const int64_t far = i > FAR ? i - FAR : 0;
    int n = 0;
    while (i > far && n < WORDS && !strchr(".;:,!?\n=", t.data[i - 1]) && !text_is_digit(t.data[i - 1])) {
        const int64_t end = i;
        while (i > far && (text_is_letter(t.data[i - 1]) || (i < end && t.data[i - 1] == '\''))) i--;
        const bool command = i > 0 && t.data[i - 1] == '\\'; /* \boxed, \text */
        if (end > i && !command) words[WORDS - ++n] = text_slice(t, i, end);
        i -= end == i;
    }
    return n;
}

/* Returns true if a negated relation precedes the value, as in "x \neq \boxed{5}". The value's
 * marks are ignored. */
static bool differs_before(tare_text t, int64_t i)
{
    static const char *const signs[] = {"\\ne", "\\neq", "\\not=", "!=", "\xE2\x89\xA0", NULL};
    for (bool more = true; more && i > 0;) {
        const tare_text front = text_slice(t, 0, i);
        more = strchr("{$ ", t.data[i - 1]) != NULL;
        if (ends_with(front, "\\boxed") || ends_with(front, "\\fbox"))
            i -= ends_with(front, "\\fbox") ? 5 : 6, more = true;
        else
            i -= more;
    }
    for (const char *const *s = signs; *s; s++)
        if (ends_with(text_slice(t, 0, i), *s)) return true;
    return false;
}

static bool denied_before(tare_text t, int64_t begin)
{
    if (differs_before(t, begin)) return true;
    tare_text words[WORDS];
    const int n = words_before(t, begin, words);
    for (int k = WORDS - 1; k >= WORDS - n; k--) {
        int used;
        const char *tex;
        const enum role role = phrase_role(words + k, WORDS - k, &used, &tex), alone = phrase_role(words + k, 1, &used, &tex);
        if (takes_out(role)) return true;
        /* anything but */
        if (k > WORDS - n && takes_out(phrase_role(words + k - 1, 2, &used, &tex)) && used == 2) return true;
        if (k == WORDS - 1 && n > 1 && text_equal(words[k], text_of("if"), true) &&
            !text_equal(words[k - 1], text_of("only"), true))
            return true; /* "if $n$ is odd": a condition */
        if (alone != ROLE_IS && alone != ROLE_DROP && alone != ROLE_RATIO && !is_answer_noun(words[k])) return false;
    }
    return false;
}

static bool denied_after(tare_text t, int64_t end)
{
    tare_text words[WORDS];
    bool comma, verb = false;
    const int n = words_after(t, end, words, &comma);
    for (int k = 0; k < n; k++) {
        int used;
        const char *tex;
        const enum role role = phrase_role(words + k, 1, &used, &tex);
        if (role == ROLE_FALSE || (verb && text_equal(words[k], text_of("impossible"), true))) return true;
        if (role == ROLE_NOT) return !comma || verb; /* 5 isn't; "5, not 6" affirms */
        if (role == ROLE_JOINT || role == ROLE_THEN || (role == ROLE_REASON && !text_equal(words[k], text_of("which"), true)))
            return false;
        verb |= role == ROLE_IS || is_auxiliary(words[k]);
    }
    return false;
}

bool is_denied(tare_text t, tare_text part)
{
    const int64_t begin = part.data - t.data, end = begin + part.size;
    return denied_before(t, begin) || denied_after(t, end);
}

bool is_bound(tare_text front)
{
    tare_text words[WORDS];
    bool comma;
    int used;
    const char *tex;
    const int n = words_after(front, 0, words, &comma);
    const enum role role = phrase_role(words, n, &used, &tex);
    return n && used == n && (role == ROLE_RELATE || role == ROLE_REFUSED || role == ROLE_NOT || role == ROLE_TEX);
}

bool is_qualified(tare_text tail)
{
    static const char *const words[] = {"or", "if", "unless", "otherwise", "maybe", "perhaps", "possibly", NULL};
    for (int64_t i = 0; i < tail.size && i < FAR;) {
        int64_t k = i;
        while (k < tail.size && text_is_letter(tail.data[k])) k++;
        for (const char *const *w = words; *w && k > i; w++)
            if (text_equal(text_slice(tail, i, k), text_of(*w), true)) return true;
        i = k > i ? k : i + 1;
    }
    return false;
}
