/* Finds the words that announce an answer: "final answer", "####", <answer>, "answer:", and the words of other languages. */
#include "common/words/anchors.h"
#include "scan.h"

#include <string.h>

int64_t skip_filler(tare_text t, int64_t i)
{
    for (;;) {
        static const char *const words[] = {"indeed ", "actually ", "simply ", "therefore ", "thus ", NULL};
        const char *const *w = words;
        while (*w && !(i < t.size && t.data[i] == **w && at_text(t, i, *w))) w++;
        if (i < t.size && (text_is_space(t.data[i]) || (t.data[i] == '>' && i && t.data[i - 1] == '\n') || t.data[i] == '*' ||
                           t.data[i] == ':' || t.data[i] == '_' || t.data[i] == '|'))
            i++;
        else if (*w)
            i += (int64_t)strlen(*w);
        else
            return i;
    }
}

/* Returns true for the form of Minerva's few-shot prompts: "... is X. I hope it is correct." */
static bool followed_by_hope(tare_text t, int64_t i)
{
    const int64_t last = i + 400 < t.size ? i + 400 : t.size;
    for (; i < last && t.data[i] != '\n'; i++)
        if (t.data[i] == 'I' && at_text(t, i, "I hope")) return true;
    return false;
}

/* Returns whether text follows the anchor, not the mark of another one. Checks 64 bytes. */
static bool names_something(tare_text t, int64_t i)
{
    const int64_t far = i + 64 < t.size ? i + 64 : t.size;
    while (i < far && (text_is_space(t.data[i]) || strchr("*:_\"'`", t.data[i]))) i++;
    return i < t.size && t.data[i] != '#' && t.data[i] != 0;
}

/* Returns true for a judgement of an earlier answer: "The answer is correct". */
static bool is_judgement(tare_text t, int64_t i)
{
    static const char *const words[] = {"correct", "right", "incorrect", "wrong", NULL};
    i = skip_filler(t, i);
    for (const char *const *w = words; *w && i < t.size; w++)
        if (t.data[i] == **w && at_text(t, i, *w) &&
            !(i + (int64_t)strlen(*w) < t.size && text_is_letter(t.data[i + (int64_t)strlen(*w)])))
            return true;
    return false;
}

/* Moves over the marks between "answer" and its link: bold, a bracket. */
static int64_t behind_noun(tare_text t, int64_t k)
{
    return k < t.size && t.data[k] == ')' ? k + 1 : k;
}

/* Returns the size of a longer link: "works out to be", "should be". */
static int64_t link_at(tare_text t, int64_t i)
{
    static const char *const links[] = {"works out to be ", "comes out to be ", "turns out to be ", "has to be ",
                                        "works out to ",    "comes out to ",    "comes to ",        "should be ",
                                        "must be ",         "equals ",          "therefore is ",    NULL};
    for (const char *const *w = links; *w && i < t.size; w++)
        if (text_lower(t.data[i]) == **w && text_starts(t, i, *w, true)) return (int64_t)strlen(*w);
    return 0;
}

void find_anchors(struct scan *s)
{
    const tare_text t = s->t;
    s->final_at = s->answer_at = -1;
    for (int64_t i = 0, env = 0; (i = i < t.size ? after_comment(s, i) : i) + 4 < t.size; i++) {
        const char c = t.data[i];
        while (env < s->envs && s->env[env].end <= i) env++;
        /* \[ \text{Answer: } 12 \]: read the whole formula */
        if (env < s->envs && s->env[env].begin < i) {
            i = s->env[env].end - 1;
            continue;
        }
        if (c == '#' && at_text(t, i, "####") && !(i + 4 < t.size && t.data[i + 4] == '#') && !(i && t.data[i - 1] == '#')) {
            if (names_something(t, i + 4)) s->final_at = i + 4; /* as final as the words */
        } else if (c == '<' && at_text(t, i, "<answer>")) {
            s->final_at = i + 8;
        } else if ((c == 'a' || c == 'A') && (t.data[i + 1] == 'n' || t.data[i + 1] == 'N') && text_starts(t, i, "answer", true) &&
                   !(i && text_is_letter(t.data[i - 1]))) {
            int64_t k = behind_noun(t, i + 6);
            const bool final = i > 5 && text_starts(t, i - 6, "final", true);
            while (k < t.size && (t.data[k] == '*' || t.data[k] == ' ' || t.data[k] == '_')) k++;
            const bool colon = k < t.size && (t.data[k] == ':' || t.data[k] == '|'),
                       is = text_starts(t, k, "is", true) && k + 2 < t.size && !text_is_letter(t.data[k + 2]);
            const int64_t link = colon || is ? 0 : link_at(t, k);
            const bool direct = k < t.size && (t.data[k] == '$' || t.data[k] == '\\' || (k > i + 6 && text_is_digit(t.data[k])) ||
                                               (final && t.data[k] == '\n'));
            if (colon || is || link || direct) {
                k += colon ? 1 : is ? 2 : link;
                int64_t *place = final ? &s->final_at : &s->answer_at;
                if (names_something(t, k) && !(*place >= 0 && is_judgement(t, k))) *place = k;
            }
            i += 5;
        }
    }
    s->hope = s->final_at >= 0 && followed_by_hope(t, s->final_at);
}

/* ---------------------------------------------------------------- other languages */

static bool is_sign(tare_text t, int64_t i, const char *sign)
{
    return text_starts(t, i, sign, false);
}

/* Returns where the sentence that holds i ends. */
static int64_t clause_end(tare_text t, int64_t i)
{
    enum { FAR = 300 };
    const int64_t far = i + FAR < t.size ? i + FAR : t.size;
    for (; i < far; i++) {
        const char c = t.data[i];
        if (c == '\n' || is_sign(t, i, "\xE3\x80\x82") || is_sign(t, i, "\xEF\xBC\x9F") || is_sign(t, i, "\xE0\xA5\xA4")) return i;
        if (strchr(".?!", c) && (i + 1 >= t.size || text_is_space(t.data[i + 1]) || t.data[i + 1] == '*')) return i;
    }
    return i;
}

static bool has_denial(tare_text t, uint64_t languages)
{
    return anchor_in(t, ANCHOR_DENIAL, &languages);
}

/* Returns whether the sentence only thinks the value possible, or joins another one to it: "könnte
 * 6 sein", "6 oder 8". */
static bool is_one_of_several(tare_text between, tare_text back, uint64_t languages)
{
    uint64_t maybe = languages, also = languages, joint = languages;
    if (anchor_in(between, ANCHOR_MAYBE, &maybe) || anchor_in(back, ANCHOR_MAYBE, &also)) return true;
    int64_t i = 0;
    while (i < back.size && strchr(" $*", back.data[i])) i++;
    int64_t n = i < back.size ? anchor_at(back, i, ANCHOR_OR, &joint) : 0;
    if (!n) return false;
    for (n += i; n < back.size && strchr(" $*", back.data[n]);) n++;
    return n < back.size && text_is_digit(back.data[n]);
}

/* Returns the formula or the number that begins in t, which follows a noun of these languages; size 0: none. */
static tare_text foreign_value(const struct scan *s, tare_text t, bool *plain)
{
    const int64_t offset = t.data - s->t.data;
    int64_t i = 0;
    for (; i < t.size; i++) {
        for (int k = s->envs - 1; k >= 0 && s->env[k].end > offset + i; k--)
            if (s->env[k].begin == offset + i) return *plain = false, text_slice(s->t, s->env[k].inner, s->env[k].inner_end);
        if (text_is_digit(t.data[i])) break;
    }
    const int64_t first = i > 0 && strchr("-+", t.data[i - 1]) ? i - 1 : i >= 3 && is_sign(t, i - 3, "\xE2\x88\x92") ? i - 3 : i;
    while (i < t.size && (text_is_digit(t.data[i]) ||
                          (strchr(".,/:'^", t.data[i]) && i + 1 < t.size && text_is_digit(t.data[i + 1])) || t.data[i] == '%' ||
                          (t.data[i] == ' ' && i + 3 < t.size && text_is_digit(t.data[i + 1]) && text_is_digit(t.data[i + 2]) &&
                           text_is_digit(t.data[i + 3]))))
        i++;
    return *plain = true, text_slice(t, first, i);
}

bool take_foreign(const struct scan *s, struct found *out)
{
    const tare_text t = s->t;
    bool found = false;
    for (int64_t i = 0; i < t.size; i++) {
        const unsigned char c = (unsigned char)t.data[i];
        uint64_t languages = ANCHOR_ANY ^ ANCHOR_ENGLISH;
        if ((c < 0x80 ? !text_is_letter(t.data[i]) : c < 0xC0) || (c < 0x80 && i && text_is_letter(t.data[i - 1]))) continue;
        const int64_t n = anchor_at(t, i, ANCHOR_NOUN, &languages);
        if (!n) continue;
        const int64_t stop = clause_end(t, i + n);
        const tare_text rest = text_slice(t, i + n, stop);
        bool plain = true;
        tare_text value = foreign_value(s, rest, &plain);
        int64_t next = i + n;
        while (next < t.size && (text_is_space(t.data[next]) || strchr("*:_", t.data[next]) || is_sign(t, next, "\xEF\xBC\x9A")))
            next += is_sign(t, next, "\xEF\xBC\x9A") ? 3 : 1;
        /* a heading: the value is on the next line */
        if (!value.size && stop < t.size && t.data[stop] == '\n' && next > stop)
            value = foreign_value(s, text_slice(t, next, clause_end(t, next)), &plain);
        uint64_t link = languages;
        const tare_text between = text_slice(t, i + n, value.size ? value.data - t.data : i + n);
        const bool linked = anchor_in(between, ANCHOR_LINK, &link) || memchr(between.data, ':', (size_t)between.size) ||
                            text_find(between, "\xEF\xBC\x9A") >= 0 || between.size < 4 || anchor_unspaced(t, i) ||
                            memchr(between.data, '=', (size_t)between.size);
        uint64_t maybe = languages;
        i += n - 1;
        if (!value.size || between.size > 120 || !(linked || anchor_in(between, ANCHOR_MAYBE, &maybe))) continue;
        const tare_text back = text_slice(t, value.data - t.data + value.size, stop);
        if (has_denial(between, languages) || (!memchr(back.data, ',', (size_t)back.size) && has_denial(back, languages))) continue;
        const bool asked = stop < t.size && (t.data[stop] == '?' || is_sign(t, stop, "\xEF\xBC\x9F"));
        found = !asked && !is_one_of_several(between, back, languages);
        *out = found ? (struct found){.text = {value}, .n = 1, .rule = "answer", .plain = plain} : (struct found){.refused = true};
    }
    return found;
}
