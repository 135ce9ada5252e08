/* Cuts a text into sentences and a sentence into words, options and marks. */
#include "choice.h"
#include "common/fences.h"
#include "common/words/anchors.h"
#include "common/words/sentences.h"

#include <string.h>

/* ---------------------------------------------------------------- cleaning */

enum { MAX_TAGGED = 60 }; /* of an answer between tags that is read as one line */

static void blank_out(char *to, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        if (to[i] != '\n') to[i] = ' ';
}

/* Returns the end of a struck-out or commented span that begins at i; i: none. */
static int64_t struck_end(tare_text t, int64_t i)
{
    static const struct {
        const char *open, *close;
    } pairs[] = {{"~~", "~~"}, {"<!--", "-->"}, {"<del>", "</del>"}, {"<s>", "</s>"}, {"<strike>", "</strike>"}};
    enum { FAR = 2000 };
    for (size_t p = 0; p < sizeof pairs / sizeof *pairs; p++) {
        if (!text_starts(t, i, pairs[p].open, true)) continue;
        const int64_t from = i + (int64_t)strlen(pairs[p].open);
        const int64_t at = text_find(text_slice(t, from, t.size < from + FAR ? t.size : from + FAR), pairs[p].close);
        return at < 0 ? i : from + at + (int64_t)strlen(pairs[p].close);
    }
    const int64_t name = text_starts(t, i, "\\cancel{", false)                                              ? 8
                         : text_starts(t, i, "\\xcancel{", false) || text_starts(t, i, "\\bcancel{", false) ? 9
                         : text_starts(t, i, "\\sout{", false)                                              ? 6
                         : text_starts(t, i, "\\st{", false)                                                ? 4
                                                                                                            : 0;
    const int64_t end = name ? text_group_end(text_slice(t, 0, t.size < i + FAR ? t.size : i + FAR), i + name - 1) : -1;
    return end < 0 ? i : end;
}

static int64_t wide_mark(tare_text t, int64_t i, char *mark);

/* Writes blanks over the emojis and other pictures that the line at i begins with. */
static void blank_signs(tare_text t, int64_t i, char *to)
{
    char mark;
    for (int64_t n = 1; i < t.size && n; i += n) {
        n = to[i] == ' ' ? 1 : wide_mark(t, i, &mark) || text_starts(t, i, "\xE2\x80", false) ? 0 : sentence_sign(t, i);
        blank_out(to, i, i + n);
    }
}

tare_text choice_clean(tare_text t, char *to)
{
    tare_text out = {to, t.size};
    struct fence f;
    if (t.size) memcpy(to, t.data, (size_t)t.size);
    for (int64_t at = 0; fence_next(t, &at, &f);) {
        const enum fence_kind kind = fence_kind_of(f.label);
        const int64_t begin = f.whole.data - t.data, body = f.body.data - t.data;
        if (kind == FENCE_PYTHON || kind == FENCE_PROGRAM)
            blank_out(to, begin, begin + f.whole.size);
        else {
            blank_out(to, begin + f.prefix.size, body);
            blank_out(to, body + f.body.size, begin + f.whole.size);
        }
    }
    for (int64_t at = 0, k; (k = text_find(text_slice(out, at, out.size), "<answer>")) >= 0;) { /* one line */
        at += k + 8;
        const int64_t end = text_find(text_slice(out, at, at + MAX_TAGGED < out.size ? at + MAX_TAGGED : out.size), "</answer>");
        for (int64_t i = at; i < at + end; i++)
            if (to[i] == '\n') to[i] = ' ';
    }
    for (int64_t i = 0; i < out.size; i++) {
        if (!i || to[i - 1] == '\n') blank_signs(out, i, to);
        if (!strchr("~<\\", to[i]) || !to[i]) continue;
        const int64_t end = struck_end(out, i);
        blank_out(to, i, end);
    }
    for (;;) { /* <|im_end|> at the end */
        out = text_trim(out);
        if (out.size > 3 && text_starts(out, out.size - 4, "</s>", false)) {
            out.size -= 4;
            continue;
        }
        if (out.size < 4 || out.data[out.size - 1] != '>' || out.data[out.size - 2] != '|') return out;
        int64_t i = out.size - 3;
        while (i > 0 && out.data[i] != '<' && out.size - i < 40) i--;
        if (out.data[i] != '<') return out;
        out.size = i;
    }
}

/* ---------------------------------------------------------------- sentences */

static bool starts_word(tare_text t, int64_t i, const char *words)
{
    for (const char *w = words; *w;) {
        const int64_t n = (int64_t)strcspn(w, "|");
        if (i + n <= t.size && text_equal(text_slice(t, i, i + n), (tare_text){w, n}, true) &&
            (i + n == t.size || !(text_is_letter(t.data[i + n]) || text_is_digit(t.data[i + n]))))
            return true;
        w += n + (w[n] != 0);
    }
    return false;
}

/* Returns whether the word that ends at `end` is an abbreviation, so that its full stop ends no
 * sentence. */
static bool is_abbreviation(tare_text t, int64_t end)
{
    int64_t i = end;
    while (i > 0 && text_is_letter(t.data[i - 1]) && end - i < 8) i--;
    return i < end && starts_word(text_slice(t, 0, end), i, "ans|opt|ref|rpta|resp|odp|vs|e|g|dr|mr|mrs|ms|fig|eq|cf|approx");
}

/* Returns whether a sentence begins at i > 0. */
static bool begins_sentence(tare_text t, int64_t i)
{
    const char before = t.data[i - 1];
    if (before == '\n') return true;
    if (i > 2) { /* full stops of Chinese and Japanese */
        const tare_text last = text_slice(t, i - 3, i);
        if (!memcmp(last.data, "\xE3\x80\x82", 3) || !memcmp(last.data, "\xEF\xBC\x81", 3) || !memcmp(last.data, "\xEF\xBC\x9F", 3))
            return true;
    }
    if (before != ' ') return false;
    if (t.data[i] == ' ' || t.data[i] == '\n') return false;
    if (starts_word(t, i, "but") && i > 4 &&
        (text_starts(t, i - 6, "thing ", true) || text_starts(t, i - 4, "all ", true) || text_starts(t, i - 5, "none ", true)))
        return false; /* anything but */
    if (starts_word(t, i, "but|however|though|although|whereas|yet")) return true;
    int64_t k = i - 1;
    while (k > 0 && t.data[k - 1] == ' ') k--;
    while (k > 0 && i - k < 8 && strchr("*_)\"'$]", t.data[k - 1])) k--;
    if (!k) return false;
    const char stop = t.data[k - 1];
    if (stop == '!' || stop == '?') return true;
    if (stop == ';') return i + 1 < t.size && text_is_letter(t.data[i]) && text_is_letter(t.data[i + 1]);
    return stop == '.' && !is_abbreviation(t, k - 1);
}

int64_t sentence_begin(tare_text t, int64_t end)
{
    int64_t i = end;
    while (i > 0 && text_is_space(t.data[i - 1])) i--;
    for (i--; i > 0 && end - i < MAX_SENTENCE; i--)
        if (begins_sentence(t, i)) return i;
    return i > 0 ? i : 0;
}

int64_t sentence_end(tare_text t, int64_t i)
{
    const int64_t far = i + MAX_SENTENCE;
    for (i++; i < t.size && i < far; i++)
        if (begins_sentence(t, i)) return i;
    return i < t.size ? i : t.size;
}

/* ---------------------------------------------------------------- tokens */

bool token_mark(const struct sentence *s, int i, const char *marks)
{
    return i >= 0 && i < s->n && s->token[i].kind == T_MARK && strchr(marks, s->token[i].mark);
}

bool token_is(const struct sentence *s, int i, const char *words)
{
    if (i < 0 || i >= s->n || s->token[i].kind != T_WORD) return false;
    const tare_text have = s->token[i].t;
    for (const char *w = words; *w;) {
        const size_t n = strcspn(w, "|");
        if (text_equal(have, (tare_text){w, (int64_t)n}, true)) return true;
        w += n + (w[n] != 0);
    }
    return false;
}

static void add_token(struct sentence *s, enum token_kind kind, tare_text t, char what)
{
    if (s->n == MAX_SENTENCE) return;
    s->token[s->n++] =
        (struct token){.kind = kind, .t = t, .mark = kind == T_MARK ? what : (char)0, .letter = kind == T_OPTION ? what : (char)0};
}

/* Reads a mark of several bytes at i: its size, 0: none. *mark 0: a sign without a meaning. */
static int64_t wide_mark(tare_text t, int64_t i, char *mark)
{
    static const struct {
        const char *text;
        char mark;
    } marks[] = {{"\xEF\xBC\x9A", ':'}, {"\xEF\xBC\x8C", ','}, {"\xE3\x80\x81", ','}, {"\xEF\xBC\x9B", ';'}, {"\xEF\xBC\x9F", '?'},
                 {"\xE3\x80\x82", '.'}, {"\xEF\xBC\x88", '('}, {"\xEF\xBC\x89", ')'}, {"\xE2\x80\x93", '-'}, {"\xE2\x80\x94", '-'},
                 {"\xE2\x86\x92", '>'}, {"\xE2\x87\x92", '>'}, {"\xE2\x9E\xA1", '>'}, {"\xE2\x9E\x9C", '>'}, {"\xE2\x88\xB4", '>'},
                 {"\xE3\x80\x90", '('}, {"\xE3\x80\x91", ')'}, {"->", '>'},           {"=>", '>'},           {"==>", '>'},
                 {"####", '#'}};
    for (size_t k = 0; k < sizeof marks / sizeof *marks; k++)
        if (text_starts(t, i, marks[k].text, false)) return *mark = marks[k].mark, (int64_t)strlen(marks[k].text);
    return 0;
}

/* Reads a command of LaTeX at i, whose name is of no interest but for arrows. Returns its end. */
static int64_t read_command(struct sentence *s, tare_text t, int64_t i)
{
    int64_t end = i + 1;
    while (end < t.size && text_is_letter(t.data[end])) end++;
    const tare_text name = text_slice(t, i + 1, end);
    static const char *const arrows[] = {"rightarrow", "Rightarrow", "to", "implies", "therefore", "longrightarrow", NULL};
    for (const char *const *a = arrows; *a; a++)
        if (text_equal(name, text_of(*a), false)) add_token(s, T_MARK, text_slice(t, i, end), '>');
    return end == i + 1 && end < t.size ? end + 1 : end;
}

/* Reads a tag at i: <answer> is a noun and its colon; others are nothing. Returns its end, or i. */
static int64_t read_tag(struct sentence *s, tare_text t, int64_t i)
{
    int64_t end = i + 1;
    while (end < t.size && end < i + 24 && t.data[end] != '>' && t.data[end] != '<' && t.data[end] != '\n') end++;
    if (end >= t.size || t.data[end] != '>' || end == i + 2) return i;
    if (text_starts(t, i, "<answer", true) || text_starts(t, i, "<final_answer", true)) {
        add_token(s, T_WORD, text_of("answer"), 0);
        add_token(s, T_MARK, text_slice(t, i, end), ':');
    }
    return end + 1;
}

/* Returns whether A or I at i is a word of English: an article in front of a word, or a pronoun. */
static bool is_english_word(tare_text t, int64_t i)
{
    static const char VERBS[] =
        "is|was|seems|appears|fits|matches|works|because|since|or|and|as|for|would|must|best|looks|makes|it|"
        "does|describes|correctly|remains|should|has|gives|answers|follows|rather|instead|in|on|with|but|satisfies|meets|fulfills|"
        "fulfils|holds|applies|agrees|survives|explains|contains|shows";
    static const char AFTER_I[] = "is|seems|fits|matches|because|since|or|and|as|best|correctly";
    const char c = t.data[i];
    if ((c != 'A' && c != 'I') || i + 2 >= t.size || t.data[i + 1] != ' ') return false;
    if (t.data[i + 2] < 'a' || t.data[i + 2] > 'z') return false;
    return !starts_word(t, i + 2, c == 'I' ? AFTER_I : VERBS);
}

/* Returns whether the last token announces an option in another language: "Antwort", "opción". */
static bool follows_noun(const struct sentence *s)
{
    if (!s->n || s->token[s->n - 1].kind != T_WORD) return false;
    uint64_t noun = ANCHOR_ANY ^ ANCHOR_ENGLISH, option = noun;
    const tare_text w = s->token[s->n - 1].t;
    return anchor_at(w, 0, ANCHOR_NOUN, &noun) || anchor_at(w, 0, ANCHOR_OPTION, &option);
}

/* Reads a word, a number or an option at i. Returns its end. */
static int64_t read_word(const struct options *o, struct sentence *s, tare_text t, int64_t i, bool dressed)
{
    int64_t end = i;
    const bool digit = text_is_digit(t.data[i]);
    while (end < t.size) {
        const char c = t.data[end];
        const bool inner = end > i && end + 1 < t.size && text_is_letter(t.data[end + 1]) && text_is_letter(t.data[end - 1]);
        if (text_starts(t, end, "\xE2\x80\x99", false) && end > i && end + 3 < t.size && text_is_letter(t.data[end + 3]))
            end += 3;
        else if (text_is_letter(c) || text_is_digit(c) || (inner && (c == '\'' || c == '-')) ||
                 (c == '_' && end + 1 < t.size && (text_is_letter(t.data[end + 1]) || text_is_digit(t.data[end + 1]))) ||
                 (digit && (c == '.' || c == ',') && end + 1 < t.size && text_is_digit(t.data[end + 1])))
            end++;
        else if ((unsigned char)c >= 0xC3 && (unsigned char)c < 0xE2 && !anchor_unspaced(t, end)) {
            for (end++; end < t.size && ((unsigned char)t.data[end] & 0xC0) == 0x80;) end++;
        } else
            break;
    }
    if (end == i) return i;
    const tare_text w = text_slice(t, i, end);
    const char before = i ? t.data[i - 1] : ' ', after = end < t.size ? t.data[end] : ' ',
               next = end + 1 < t.size ? t.data[end + 1] : ' ';
    const bool bracket = before == '(' || before == '[';
    const bool initials = (after == '.' && text_is_letter(next)) || (before == '.' && i > 1 && text_is_letter(t.data[i - 2]));
    const bool small = w.size == 1 && w.data[0] >= 'a' && w.data[0] <= 'z' && o->lowercase &&
                       option_has(o, (char)(w.data[0] - 'a' + 'A')) &&
                       ((bracket && (after == ')' || after == ']')) || (before == ' ' && after == ')'));
    const bool capital = w.size == 1 && w.data[0] >= 'A' && w.data[0] <= 'Z';
    if (!(small || capital) || initials || (after == '+' && next == '+') || after == '^' ||
        (capital && !bracket && !dressed && !follows_noun(s) && is_english_word(t, i))) {
        add_token(s, digit ? T_NUMBER : T_WORD, w, 0);
        return end;
    }
    add_token(s, T_OPTION, w, small ? (char)(w.data[0] - 'a' + 'A') : w.data[0]);
    s->token[s->n - 1].marked = bracket || dressed || after == ')' || (after == '.' && next == ' ') || after == ':';
    return end;
}

/* Reads a run of an unspaced script, or a sign. Returns its end. */
static int64_t read_wide(struct sentence *s, tare_text t, int64_t i)
{
    int64_t end = i;
    char mark = 0;
    while (end < t.size && (unsigned char)t.data[end] >= 0x80 && !wide_mark(t, end, &mark) && anchor_unspaced(t, end))
        for (end++; end < t.size && ((unsigned char)t.data[end] & 0xC0) == 0x80;) end++;
    if (end > i) {
        add_token(s, T_SCRIPT, text_slice(t, i, end), 0);
        return end;
    }
    const unsigned char *p = (const unsigned char *)t.data + i;
    if (t.size - i > 2 && p[0] == 0xEF && p[1] == 0xBC && p[2] >= 0xA1 && p[2] <= 0xBA) /* full-width capitals */
        add_token(s, T_OPTION, text_slice(t, i, i + 3), (char)('A' + p[2] - 0xA1));
    for (end++; end < t.size && ((unsigned char)t.data[end] & 0xC0) == 0x80;) end++;
    return end;
}

void sentence_cut(const struct options *o, tare_text t, struct sentence *s)
{
    bool dressed = false;
    s->t = t;
    s->n = 0;
    for (int64_t i = 0; i < t.size;) {
        const char c = t.data[i];
        char mark = 0;
        int64_t n = wide_mark(t, i, &mark);
        if (n) {
            add_token(s, T_MARK, text_slice(t, i, i + n), mark);
            i += n;
        } else if (c == '\\') {
            i = read_command(s, t, i);
            dressed = true;
            continue;
        } else if (c == '<' && (n = read_tag(s, t, i)) > i) {
            i = n;
        } else if (strchr(",;:=-()[]|/&+.?#>\n", c) && c) {
            add_token(s, T_MARK, text_slice(t, i, i + 1), c == '[' ? '(' : c == ']' ? ')' : c);
            i++;
        } else if (text_is_letter(c) || text_is_digit(c) ||
                   ((unsigned char)c >= 0xC3 && (unsigned char)c < 0xE2 && !anchor_unspaced(t, i))) {
            i = read_word(o, s, t, i, dressed);
        } else if ((unsigned char)c >= 0x80) {
            const bool quote = text_starts(t, i, "\xE2\x80\x9C", false) || text_starts(t, i, "\xE2\x80\x98", false);
            i = read_wide(s, t, i);
            dressed = quote;
            continue;
        } else {
            dressed = !text_is_space(c) && strchr("$*_\"'`{", c);
            i++;
            continue;
        }
        dressed = false;
    }
}
