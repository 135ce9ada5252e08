/* Extracts the text of the answer from a completion, in linear time and without recursion.
 * Only the text after the last </think> counts; none if a <think> is still open. By priority:
 *   boxed_priority 0    last box (or a later "final answer is X. I hope it is correct") >
 *                       "final answer" > "answer" > last environment or number
 *   boxed_priority 50   the last of box and "final answer" (by its end) > "answer" > ...
 *   boxed_priority 100  "final answer" > the last of box and "answer" > ...
 * Adjacent boxes (only a comma, "and", "or", or blanks between them) form one list; so do
 * environments. "final answer" also stands for "####" and <answer>; "answer" means "answer:",
 * "answer is", "answer $..$"; the last one of a kind counts. The result is not searched further: an
 * unparsable answer is not replaced by a number inside it. A later box that is never closed was
 * truncated: there is no answer.
 */
#include "common/words/anchors.h"
#include "common/words/sentences.h"
#include "joint.h"
#include "numerals.h"
#include "prose.h"
#include "scan.h"
#include "units.h"

#include <string.h>

enum { MAX_JOINED = 6 };

static void take_joined(const struct scan *s, const struct span *list, int n, int most, bool words, struct found *out)
{
    int first = n - 1;
    while (first > 0 && n - first < most && is_joint(text_slice(s->t, list[first - 1].end, list[first].begin), words)) first--;
    out->n = 0, out->joints = 0;
    for (int i = first; i < n; i++) {
        /* several: which is which */
        const int64_t name = first < n - 1 ? named_from(s->t, list[i].begin) : list[i].begin;
        if (i > first) out->joints |= joint_in(text_slice(s->t, list[i - 1].end, list[i].begin));
        const tare_text inner = unboxed(text_slice(s->t, list[i].inner, list[i].inner_end));
        out->text[out->n++] = name < list[i].begin ? text_slice(s->t, name, list[i].end) : inner;
    }
}

/* ---------------------------------------------------------------- plain text: anchors, numbers */

static int64_t sentence_end(tare_text t, int64_t i)
{
    for (; i < t.size; i++) {
        const char c = t.data[i];
        if (c == '\n' || at_text(t, i, "<|") || at_text(t, i, "</answer>")) return i;
        if ((c == '.' || c == '?' || c == '!') && (i + 1 >= t.size || text_is_space(t.data[i + 1]) || t.data[i + 1] == '*'))
            return i;
    }
    return i;
}

static bool known_word(const char *s, int64_t n)
{
    int power;
    return n == 1 || half_of_day((tare_text){s, n}, 0) || find_function(s, n) || find_unit(s, n, false).kind ||
           find_scale(s, n, &power) || is_percent_word(s, n) || is_degree_word(s, n) ||
           (n == 2 && (!memcmp(s, "or", 2) || !memcmp(s, "to", 2))) || (n == 3 && !memcmp(s, "and", 3));
}

/* Returns the mathematical start of a line with a leading number: "42 apples" gives 42. */
static tare_text numeric_front(tare_text t)
{
    int64_t i = 0;
    while (i < t.size) {
        if (t.data[i] == '\\') {
            for (i++; i < t.size && text_is_letter(t.data[i]);) i++;
            continue;
        }
        if (!text_is_letter(t.data[i])) {
            i++;
            continue;
        }
        int64_t n = i;
        while (n < t.size && text_is_letter(t.data[n])) n++;
        if (!known_word(t.data + i, n - i)) break;
        /* a unit attached to the number, with its power: 1,000.99m2 */
        const bool raised = n < t.size && ((unsigned char)t.data[n] == 0xC2 || t.data[n] == '^');
        if (raised && i > 0 && text_is_digit(t.data[i - 1]) && find_unit(t.data + i, n - i, true).kind) break;
        i = n;
    }
    t = text_slice(t, 0, i);
    while (t.size && (text_is_space(t.data[t.size - 1]) || strchr(",;:*(-", t.data[t.size - 1]))) t.size--;
    return t;
}

/* Cuts at the end of bold text: "204** minutes", but not 2**3. */
static tare_text to_bold_end(tare_text t)
{
    for (int64_t i = 1; i + 1 < t.size; i++)
        if (t.data[i] == '*' && t.data[i + 1] == '*' && !text_is_space(t.data[i - 1]) &&
            (i + 2 == t.size || !(text_is_digit(t.data[i + 2]) || text_is_letter(t.data[i + 2]) || t.data[i + 2] == '(')))
            return text_slice(t, 0, i);
    return t;
}

static tare_text strip_marks(tare_text t)
{
    t = text_trim(t);
    while (t.size && strchr("*_`\"|", t.data[0])) t = text_trim(text_slice(t, 1, t.size));
    while (t.size && strchr("*_`\".,;:|", t.data[t.size - 1])) t = text_trim(text_slice(t, 0, t.size - 1));
    return t;
}

static bool starts_number(tare_text t)
{
    if (!t.size) return false;
    const char c = t.data[0];
    return text_is_digit(c) || c == '-' || c == '+' || c == '.' || c == '(' || c == '[' || c == '\\' || (unsigned char)c >= 0x80;
}

/* Cuts at a sign that is no mathematics: an emoji, a dash between blanks, an ellipsis of one character. */
static tare_text to_sign(tare_text t)
{
    for (int64_t i = 1; i + 2 < t.size; i++) {
        const unsigned char *p = (const unsigned char *)t.data + i;
        if (p[0] != 0xE2 && p[0] != 0xF0) continue;
        const bool dash = p[0] == 0xE2 && p[1] == 0x80 && (p[2] == 0x93 || p[2] == 0x94) && t.data[i - 1] == ' ' &&
                          i + 3 < t.size && t.data[i + 3] == ' ';
        const bool dots = p[0] == 0xE2 && p[1] == 0x80 && p[2] == 0xA6 && i + 3 == t.size;
        if (!dash && !dots && p[0] != 0xF0 && !(p[0] == 0xE2 && p[1] >= 0x98 && p[1] <= 0x9E)) continue;
        t = text_trim(text_slice(t, 0, i));
        if (t.size && t.data[t.size - 1] == '(') t.size--;
        return text_trim(t);
    }
    return t;
}

/* Returns the value that ends the sentence as its conclusion, "24" of "30% of 80, so 24"; else the
 * whole. */
static tare_text concluded(tare_text t)
{
    const int64_t i = text_find_last(t, ", so ");
    const tare_text rest = i < 0 ? t : text_trim(text_slice(t, i + 5, t.size));
    return i > 0 && starts_number(rest) && numeric_front(rest).size == rest.size ? rest : t;
}

/* Takes the text after an anchor at i. false: it cannot be an answer. */
static bool take_anchored(const struct scan *s, int64_t i, const struct options *o, struct found *out)
{
    const tare_text t = s->t;
    i = skip_filler(t, i);
    int64_t end = sentence_end(t, i);
    if (is_request(text_slice(t, i, end))) return out->refused = true;
    if (i < t.size && t.data[i] == '$' && o->use_latex &&
        !at_text(t, i, "$$")) { /* earlier $ signs of currency may have shifted the pairs */
        const char *close = memchr(t.data + i + 1, '$', (size_t)(t.size - i - 1)),
                   *line_end = memchr(t.data + i, '\n', (size_t)(t.size - i));
        bool known = false;
        for (int k = 0; k < s->envs; k++) known |= s->env[k].begin == i;
        if (!known && close && (!line_end || close < line_end)) {
            out->text[0] = text_slice(t, i + 1, close - t.data);
            return out->n = 1, text_trim(out->text[0]).size > 0;
        }
    }
    for (int k = 0; k < s->envs; k++) { /* an environment that starts here, with its neighbours */
        const struct span *e = &s->env[k];
        if (e->begin != i || !o->use_latex) continue;
        int last = k;
        while (last + 1 < s->envs && last - k + 1 < MAX_JOINED &&
               is_joint(text_slice(t, s->env[last].end, s->env[last + 1].begin), false))
            last++;
        take_joined(s, s->env + k, last - k + 1, MAX_JOINED, false, out);
        return out->n > 0;
    }
    tare_text line = text_slice(t, i, end);
    for (int64_t k = line.size - 4; k > 0; k--) /* "The volume of $ABCD$ is 120" */
        if (!starts_number(line) && at_text(line, k, " is ")) {
            line = text_slice(line, k + 4, line.size);
            break;
        }
    const int64_t offset = line.data - t.data;
    for (int k = s->envs - 1; k >= 0 && o->use_latex; k--)
        if (s->env[k].begin >= offset && s->env[k].end <= offset + line.size)
            return take_joined(s, &s->env[k], 1, 1, false, out), true;
    if (!o->use_expr) return false;
    line = to_bold_end(strip_marks(to_sign(strip_marks(line))));
    if (line.size && line.data[0] == '$') line = text_slice(line, 1, line.size);
    line = concluded(line);
    const tare_text whole = line;
    if (starts_number(line)) line = strip_marks(numeric_front(line));
    if (is_qualified(text_slice(whole, line.data + line.size - whole.data, whole.size))) line = whole;
    if (!line.size) return false;
    out->whole = whole;
    out->text[0] = line;
    out->n = 1;
    out->plain = !memchr(line.data, '\\', (size_t)line.size);
    return true;
}

/* Extends the last number, which ends at i, to brackets that hold several: (3, 5). */
static bool last_tuple(tare_text t, int64_t i, tare_text *out)
{
    enum { FAR = 96 };
    bool comma = false;
    int64_t k = i;
    if (i >= t.size || (t.data[i] != ')' && t.data[i] != ']')) return false;
    while (k > 0 && i - k < FAR && (text_is_digit(t.data[k - 1]) || strchr(".,;+-/ ", t.data[k - 1])))
        comma |= strchr(",;", t.data[--k]) != NULL;
    if (!comma || !k || (t.data[k - 1] != '(' && t.data[k - 1] != '[')) return false;
    /* f(3, 5) */
    if (k > 1 && !text_is_space(t.data[k - 2]) && !strchr("=:*", t.data[k - 2])) return false;
    return *out = text_slice(t, k - 1, i + 1), true;
}

/* Returns whether a word ends at i: a blank, or a character of a script without blanks. */
static bool ends_word(tare_text t, int64_t i)
{
    int64_t k = i;
    while (k > 0 && i - k < 3 && ((unsigned char)t.data[k] & 0xC0) == 0x80) k--;
    return text_is_space(t.data[i]) ||
           ((unsigned char)t.data[k] >= 0xE0 &&
            (anchor_unspaced(t, k) || text_starts(t, k, "\xEF\xBC\x8C", false) || text_starts(t, k, "\xE3\x80", false)));
}

/* Returns whether the digits at i are the exponent of a unit, as in cm^2. */
static bool raises_unit(tare_text t, int64_t i)
{
    if (i > 0 && strchr("{-", t.data[i - 1])) i--;
    if (i > 0 && t.data[i - 1] == '{') i--;
    int64_t end = i - 1, k = end;
    while (k > 0 && text_is_letter(t.data[k - 1])) k--;
    return end > 0 && t.data[end] == '^' && k < end && (!k || text_is_space(t.data[k - 1])) &&
           find_unit(t.data + k, end - k, true).kind;
}

/* Returns where the number begins whose last part begins at i, behind groups of digits ("299 792
 * 458") or the factor of a power of ten ("6.02 \times 10^{23}"). */
static int64_t first_group(tare_text t, int64_t i)
{
    enum { GROUPS = 8 };
    static const char *const signs[] = {"\xC3\x97", "\\times", "\\cdot", "x", "*", NULL};
    const bool power = at_text(t, i, "10^") || at_text(t, i, "10\xC2") || at_text(t, i, "10\xE2\x81");
    for (const char *const *w = signs; *w && power; w++) {
        const int64_t n = (int64_t)strlen(*w);
        if (i < n + 3 || t.data[i - 1] != ' ' || !at_text(t, i - 1 - n, *w) || t.data[i - 2 - n] != ' ') continue;
        for (i -= n + 2; i > 0 && !ends_word(t, i - 1);) i--;
        return i;
    }
    for (int n = 0; n < GROUPS && i > 1 && t.data[i - 1] == ' ' && text_is_digit(t.data[i - 2]); n++) {
        int64_t k = i;
        while (k < t.size && text_is_digit(t.data[k])) k++;
        int64_t before = i - 1;
        while (before > 0 && text_is_digit(t.data[before - 1])) before--;
        const bool first = !before || text_is_space(t.data[before - 1]) || strchr("-+$(", t.data[before - 1]);
        if (k - i != 3 || i - 1 - before > 3 || !first) break;
        for (i = before; i > 0 && strchr("-+$", t.data[i - 1]);) i--;
    }
    return i;
}

/* Finds the last word with a digit, cut to its number; *end is its end. */
static bool last_number(tare_text t, tare_text *out, int64_t *end)
{
    int64_t i = t.size;
    for (int64_t k;; i = k) { /* the label of a list's item is no number */
        while (i > 0 && !text_is_digit(t.data[i - 1])) i--;
        for (k = i; k > 0 && text_is_digit(t.data[k - 1]);) k--;
        if (!i || !(is_list_label(t, k, i) || raises_unit(t, k))) break;
    }
    if (!i) return false;
    int64_t last = i, first = i - 1;
    while (last < t.size && !ends_word(t, last) && t.data[last] != '<') last++;
    while (first > 0 && last - first < MAX_ANSWER && !ends_word(t, first - 1)) first--;
    first = first_group(t, first);
    tare_text w = text_slice(t, first, last);
    *end = i;
    if (last_tuple(t, i, out)) return true;
    int64_t k = 0, from;
    for (from = 0; from < w.size; from++) /* after the last = */
        if (w.data[from] == '=') k = from + 1;
    w = text_slice(w, k, w.size);
    from = 0;
    while (from < w.size && !(text_is_digit(w.data[from]) || w.data[from] == '\\' ||
                              (w.data[from] == '.' && from + 1 < w.size && text_is_digit(w.data[from + 1])) ||
                              ((w.data[from] == '-' || w.data[from] == '+') && from + 1 < w.size &&
                               (text_is_digit(w.data[from + 1]) || w.data[from + 1] == '\\' || w.data[from + 1] == '.')) ||
                              at_text(w, from, "\xE2\x88\x92") || at_text(w, from, "\xE2\x88\x9A")))
        from++;
    w = text_slice(w, from, w.size);
    if (!w.size || w.data[0] != '\\') w = numeric_front(w);
    int64_t braces = 0, parens = 0; /* keep the balanced part */
    for (int64_t q = 0; q < w.size; q++) {
        braces += w.data[q] == '{' ? 1 : w.data[q] == '}' ? -1 : 0;
        parens += w.data[q] == '(' ? 1 : w.data[q] == ')' ? -1 : 0;
    }
    for (char c; w.size && strchr(".,;:!?)]}*_$\"'", c = w.data[w.size - 1]); w.size--) {
        if ((c == '}' && braces++ >= 0) || (c == ')' && parens++ >= 0)) break;
    }
    const int64_t begin = w.data - t.data, half = begin + w.size + (begin + w.size < t.size && t.data[begin + w.size] == ' ');
    if (half_of_day(t, half)) w.size = half + half_of_day(t, half) - begin; /* 10:00 AM */
    *out = w;
    return w.size > 0;
}

/* Finds a bold number on the last line, unless that is a step: "She pays **$64** for 16 glasses." */
static bool bold_number(tare_text t, tare_text *out, int64_t *begin)
{
    int64_t last = t.size;
    while (last > 0 && text_is_space(t.data[last - 1])) last--;
    for (int64_t i = last - 2, close = -1; i >= 0 && t.data[i] != '\n'; i--) {
        if (t.data[i] != '*' || t.data[i + 1] != '*') continue;
        if (close < 0) {
            close = i--;
            continue;
        }
        tare_text w = text_trim(text_slice(t, i + 2, close));
        if (w.size && w.data[0] == '$') w = text_slice(w, 1, w.size);
        if (starts_number(w) && !(strchr(".):", w.data[w.size - 1]) && text_is_digit(w.data[0])))
            return *out = strip_marks(numeric_front(w)), *begin = i, true;
        close = -1, i--;
    }
    return false;
}

/* Takes bold text at the end of the text: "The day is **Monday**." */
static bool bold_end(tare_text t, tare_text *out, int64_t *begin)
{
    enum { LONGEST = 80 };
    int64_t end = t.size, i;
    while (end > 0 && (text_is_space(t.data[end - 1]) || t.data[end - 1] == '.')) end--;
    if (end < 5 || t.data[end - 1] != '*' || t.data[end - 2] != '*') return false;
    for (i = end - 3; i > 1 && i > end - LONGEST && t.data[i] != '\n' && !(t.data[i] == '*' && t.data[i - 1] == '*');) i--;
    if (t.data[i] != '*' || i < 2) return false;
    *out = strip_marks(text_slice(t, i + 1, end - 2));
    /* a sentence with a number: the number is read below */
    int words = 0;
    bool digits = false;
    for (int64_t k = 0; k < out->size; k++) {
        digits |= text_is_digit(out->data[k]);
        words += (unsigned char)out->data[k] >= 0xC0 || (text_is_letter(out->data[k]) && (!k || !text_is_letter(out->data[k - 1])));
    }
    if (digits && words > 2 && !starts_number(*out) && !memchr(out->data, '=', (size_t)out->size) &&
        !memchr(out->data, '$', (size_t)out->size))
        return false;
    return *begin = i - 1, out->size > 0 && text_is_space(t.data[i - 2]);
}

/* Returns the sentence around the part of t, on its line. */
static tare_text sentence_of(tare_text t, tare_text part)
{
    const int64_t at = part.data - t.data, end = sentence_end(t, at + part.size);
    return strip_marks(text_slice(t, sentence_start(t, at, MAX_ANSWER), end));
}

/* Takes the last sentence of a text without digits if it has a number: "The total is seven." */
static bool take_last_sentence(tare_text t, const struct options *o, struct found *out)
{
    enum { FAR = 200 };
    t = strip_marks(t);
    if (!o->use_expr || !o->number_words || !t.size) return false;
    const tare_text line = sentence_of(t, text_slice(t, t.size - 1, t.size));
    if (line.size == t.size && states_words(line)) {
        *out = (struct found){.text = {line}, .n = 1, .rule = "last sentence", .plain = true, .whole = line};
        return true;
    }
    for (int64_t i = 0; i < line.size && line.size < FAR;) {
        int64_t k = i;
        while (k < line.size && text_is_letter(line.data[k])) k++;
        if (k > i && is_numeral_word(text_slice(line, i, k))) {
            *out = (struct found){.text = {line}, .n = 1, .rule = "last sentence", .plain = true, .whole = line};
            return true;
        }
        i = k > i ? k : i + 1;
    }
    return false;
}

static bool take_last(const struct scan *s, const struct options *o, struct found *out)
{
    tare_text number;
    int64_t end = -1, bold;
    bool have = o->use_expr && last_number(s->t, &number, &end);
    const int64_t env_end = s->envs && o->use_latex ? s->env[s->envs - 1].end : -1;
    if (o->use_expr && bold_end(s->t, &number, &bold) && bold > end && bold > env_end)
        have = true, end = bold;
    else if (have && end > env_end && bold_number(s->t, &number, &bold) && bold < env_end)
        have = last_number(s->t, &number, &end);
    const bool approximation = env_end >= 0 && end > env_end && approximates(text_slice(s->t, env_end, end));
    if (env_end >= 0 && (env_end >= end || approximation)) {
        take_joined(s, s->env, s->envs, MAX_JOINED, false, out);
        out->rule = "last environment";
        return true;
    }
    if (!have) return false;
    out->whole = sentence_of(s->t, number);
    if (number.data > out->whole.data && is_bound(text_slice(out->whole, 0, number.data - out->whole.data))) number = out->whole;
    out->text[0] = number;
    out->n = 1;
    out->plain = !memchr(number.data, '\\', (size_t)number.size);
    out->rule = "last number";
    return true;
}

/* Returns the text from the part, with its currency sign, to the end of its sentence. */
static tare_text onward_from(tare_text t, tare_text part)
{
    enum { FAR = 120 };
    int64_t begin = part.data - t.data;
    const int64_t stop = sentence_end(t, begin + part.size), far = begin + part.size + FAR, after = begin + part.size;
    const int64_t end = stop < far ? stop : far;
    while (begin > 0 && begin < t.size && ((unsigned char)t.data[begin - 1] & 0xC0) == 0x80)
        begin--; /* the bytes of \xE2\x82\xAC */
    if (begin > 0 && (unsigned char)t.data[begin - 1] >= 0xC0) begin--;
    bool more = begin < part.data - t.data;
    for (int64_t i = after; i < end && !more; i++) more = text_is_letter(t.data[i]) || text_is_digit(t.data[i]) || t.data[i] == '%';
    if (!more) return (tare_text){"", 0};
    return text_slice(t, begin, end);
}

/* Returns where the last sentence of the text begins. */
static int64_t last_sentence(tare_text t)
{
    int64_t i = t.size;
    while (i > 0 && text_is_space(t.data[i - 1])) i--;
    return sentence_start(t, i, i);
}

/* Takes the boxes at the end of the list that are stated, not reported. *rest: the text behind one that is only reported. */
static bool take_boxes(struct scan *s, struct found *out, tare_text *rest)
{
    while (s->boxes) {
        const struct span last = s->box[s->boxes - 1];
        if (!is_reported(s->t, last.begin, last.end)) break;
        if (!rest->size) *rest = text_slice(s->t, last.end, s->t.size);
        s->boxes--;
    }
    if (!s->boxes) return false;
    take_joined(s, s->box, s->boxes, KEPT, true, out);
    out->rule = "box";
    return true;
}

/* Returns whether the text between the anchor at i and the end of its sentence is a value other than the box's. */
static bool replaces_box(const struct scan *s, int64_t i, const struct options *o, const struct found *box, struct found *out)
{
    static const char *const same[] = {"approx", "about", "roughly", "decimal", "\xE2\x89\x88", "round", NULL};
    if (i < 0 || !box->n || i < sentence_end(s->t, box->text[box->n - 1].data - s->t.data)) return false;
    const tare_text near = text_slice(s->t, i, sentence_end(s->t, i));
    for (const char *const *w = same; *w; w++)
        if (text_find(near, *w) >= 0) return false;
    if (text_find(near, "boxed") >= 0 || !take_anchored(s, i, o, out) || out->n != 1) return false;
    const tare_text value = text_trim(out->text[0]);
    int64_t k = 0;
    while (k < value.size && !text_is_digit(value.data[k])) k++;
    if (k == value.size) return false;
    int64_t n = k;
    while (n < value.size &&
           (text_is_digit(value.data[n]) || (value.data[n] == '.' && n + 1 < value.size && text_is_digit(value.data[n + 1]))))
        n++;
    for (int b = 0; b < box->n; b++) /* the same digits */
        for (int64_t p = 0; p + n - k <= box->text[b].size; p++)
            if (!memcmp(box->text[b].data + p, value.data + k, (size_t)(n - k))) return false;
    out->rule = "answer";
    return starts_number(value) && is_claimed(s->t, value, false);
}

/* Takes the last formula or number of the main clause. */
static void take_guess(const struct options *o, struct scan *s, struct found *out)
{
    const tare_text whole = s->t;
    bool keep;
    if (take_foreign(s, out) || out->refused) return;
    s->t = without_closing(whole);
    while (s->envs && s->env[s->envs - 1].end > s->t.size) s->envs--;
    const tare_text clause = main_clause(s, s->t, &keep);
    s->t = clause;
    while (s->envs && s->env[s->envs - 1].end > s->t.size) s->envs--;
    if (!o->guess || (!take_last(s, o, out) && !take_last_sentence(s->t, o, out))) out->n = 0, out->rule = NULL;
    if (out->n) out->read = keep ? whole : s->t;
}

static void find_answer(const struct options *o, tare_text t, struct found *out, tare_text *rest)
{
    struct scan s = {.t = t, .open_box = -1, .open_formula = -1};
    *out = (struct found){.n = 0};
    *rest = (tare_text){"", 0};
    s.comments_end = text_find_last(s.t, "-->") + 3; /* 2: none */
    if (o->use_latex) find_boxes(&s), find_environments(&s);
    find_anchors(&s);
    const int64_t box_end = s.boxes ? s.box[s.boxes - 1].end : -1;
    if (s.open_box > box_end && s.open_box > s.final_at && s.open_box > s.answer_at) return;
    const bool cut = is_unfinished(t) || s.open_formula > box_end;
    if (cut) { /* the last sentence claims nothing */
        const int64_t from = s.open_formula > box_end && s.open_formula < last_sentence(t) ? s.open_formula : last_sentence(t);
        if (s.final_at >= from) s.final_at = -1;
        if (s.answer_at >= from) s.answer_at = -1;
    }
    bool box = s.boxes > 0, final = s.final_at >= 0, answer = s.answer_at >= 0;
    for (int rank = 0; rank < 3; rank++) {
        const bool hoped = s.hope && s.final_at > box_end;
        const bool box_first = o->boxed_priority <= 0    ? rank == 0 && !hoped
                               : o->boxed_priority < 100 ? rank == 0 && box_end > s.final_at
                                                         : rank == 1 && box_end > s.answer_at;
        if (box && (box_first || rank == (o->boxed_priority < 100 ? 1 : 2))) {
            box = take_boxes(&s, out, rest);
            if (box) {
                struct found later = {.n = 0};
                if (replaces_box(&s, s.final_at > s.answer_at ? s.final_at : s.answer_at, o, out, &later)) *out = later;
                return;
            }
        }
        if (final && ((rank == 0 && (o->boxed_priority > 0 || hoped)) || rank == 1)) {
            final = false;
            if (take_anchored(&s, s.final_at, o, out)) {
                out->rule = out->refused ? NULL : "final answer";
                return;
            }
        }
        if (answer && rank >= 1) {
            answer = false;
            if (take_anchored(&s, s.answer_at, o, out)) {
                out->rule = out->refused ? NULL : "answer";
                return;
            }
        }
    }
    if (rest->size || cut || out->refused) return;
    take_guess(o, &s, out);
}

/* Drops an answer that the text around it does not state. */
static void check_answer(tare_text t, struct found *out)
{
    if (!out->n) return;
    const tare_text last = out->text[out->n - 1], all = {out->text[0].data, last.data + last.size - out->text[0].data};
    const bool box = out->rule && !strcmp(out->rule, "box"), guess = out->rule && !strncmp(out->rule, "last", 4);
    if (out->read.size) t = out->read;
    if (is_request(out->text[0]) || (guess && is_request(sentence_of(t, all))) || is_denied(t, all) ||
        (out->whole.size && is_corrected(t, all)) || is_retracted(t, all) || is_regretted(t, all.data - t.data + all.size) ||
        (!box && !is_claimed(t, all, guess))) {
        *out = (struct found){.n = 0};
    } else if (out->n == 1) {
        out->operated = out->whole.size && is_operated(t, all);
        out->onward = onward_from(t, all);
    }
}

/* Looks for an answer in the text after one that was only reported or was taken back. stated: a guess must be stated as the value. */
static void find_later(const struct options *o, tare_text t, bool stated, struct found *out)
{
    tare_text rest;
    find_answer(o, t, out, &rest);
    check_answer(t, out);
    if (!out->n || !stated) return;
    const bool guess = !strncmp(out->rule, "last", 4);
    if (guess && !is_restated(t, out->text[0])) *out = (struct found){.n = 0};
}

void extract_answer(const struct options *o, tare_text t, struct found *out)
{
    tare_text rest;
    find_answer(o, t, out, &rest);
    if (!out->n && rest.size) {
        find_later(o, rest, false, out);
        return;
    }
    if (!out->n) return;
    const bool guess = !strncmp(out->rule, "last", 4);
    const tare_text last = out->text[out->n - 1];
    const int64_t end = last.data - t.data + last.size;
    check_answer(t, out);
    if (guess) return;
    if (out->n) { /* "Actually it is 5" */
        const int64_t at = correction_at(t, end);
        struct found later = {.n = 0};
        if (at >= 0) find_later(o, text_slice(t, at, t.size), true, &later);
        if (later.n) *out = later;
    } else if (end < t.size) {
        find_later(o, text_slice(t, end, t.size), true, out);
    }
}
