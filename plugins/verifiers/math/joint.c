/* Adjacent boxes: the text allowed between two boxes of one list, the names before them, nested
 * boxes. */
#include "joint.h"

#include "tokens.h"

#include <string.h>

enum { MAX_GAP = 70, NEAR = 10 };

/* Returns where the "x =" before i starts; i: none. */
int64_t named_from(tare_text t, int64_t i)
{
    enum { LONGEST = 16 };
    int64_t k = i;
    while (k > 0 && t.data[k - 1] == ' ') k--;
    if (k < 2 || t.data[k - 1] != '=') return i;
    for (k--; k > 0 && t.data[k - 1] == ' ';) k--;
    const int64_t end = k, far = k > LONGEST ? k - LONGEST : 0;
    while (k > far && (text_is_letter(t.data[k - 1]) || text_is_digit(t.data[k - 1]) || strchr("_{}\\", t.data[k - 1]))) k--;
    if (k == end || !(text_is_letter(t.data[k]) || t.data[k] == '\\')) return i;
    return k && !strchr(" $,;([{\n", t.data[k - 1]) ? i : k;
}

/* Returns whether the text between two boxes only joins them. The name of the second one may be
 * there: "and $y =$". */
bool is_joint(tare_text gap, bool words)
{
    bool connective = false, other = false, stop = false;
    gap.size = named_from(gap, gap.size);
    if (gap.size > MAX_GAP) return false;
    for (int64_t i = 0; i < gap.size;) {
        const char c = gap.data[i];
        if (text_is_letter(c)) {
            int64_t n = i;
            while (n < gap.size && text_is_letter(gap.data[n])) n++;
            const tare_text w = text_slice(gap, i, n);
            if (text_equal(w, text_of("and"), true) || text_equal(w, text_of("or"), true))
                connective = true;
            else if (!(i > 0 && gap.data[i - 1] == '\\'))
                other = true; /* \quad, \text, \textbf are not words */
            i = n;
            continue;
        }
        if (c == ',' || c == ';')
            connective = true;
        else if (c == '.' || c == '?' || c == '!' || c == ':' || c == '=')
            stop = true;
        else if (text_is_digit(c) || c == '+' || c == '-')
            other = true;
        i++;
    }
    if (stop) return false;
    if (!other) return connective || gap.size < NEAR;
    bool and_or = false;
    for (int64_t i = 0; i + 2 < gap.size && !and_or; i++)
        and_or = gap.data[i] == ' ' && (text_starts(gap, i + 1, "and ", true) || text_starts(gap, i + 1, "or ", true));
    return words && and_or;
}

int joint_in(tare_text gap)
{
    int joint = 0;
    for (int64_t i = 0; i < gap.size && i < MAX_GAP;) {
        int64_t n = i;
        while (n < gap.size && text_is_letter(gap.data[n])) n++;
        if (text_equal(text_slice(gap, i, n), text_of("or"), true)) joint |= JOINT_OR;
        if (text_equal(text_slice(gap, i, n), text_of("and"), true)) joint |= JOINT_AND;
        i = n > i ? n : i + 1;
    }
    return joint;
}

/* Returns the innermost text of nested boxes: x for \boxed{\boxed{x}}. */
tare_text unboxed(tare_text t)
{
    tare_text inner = text_trim(t);
    for (int deep = 0; deep < 4 && text_starts(inner, 0, "\\boxed{", false) && inner.data[inner.size - 1] == '}'; deep++) {
        int depth = 0;
        int64_t i = 6;
        for (; i < inner.size; i++) {
            if (inner.data[i] == '\\')
                i++;
            else if (inner.data[i] == '{')
                depth++;
            else if (inner.data[i] == '}' && !--depth)
                break;
        }
        if (i + 1 != inner.size) return t;
        t = inner = text_trim(text_slice(inner, 7, inner.size - 1));
    }
    return t;
}

/* Returns whether the text after a formula is only its approximation: "$\frac13$, or approximately
 * 33.3%". */
bool approximates(tare_text gap)
{
    static const char *const words[] = {"approximately ", "about ", "roughly ", "around ", "\xE2\x89\x88", NULL};
    enum { FAR = 40 };
    if (gap.size > FAR) return false;
    bool found = false;
    for (int64_t i = 0; i < gap.size; i++) {
        if (gap.data[i] == '\n' || (gap.data[i] == '.' && i + 1 < gap.size && text_is_space(gap.data[i + 1]))) return false;
        for (const char *const *w = words; *w && !found; w++) found = gap.data[i] == **w && text_starts(gap, i, *w, false);
    }
    return found;
}
