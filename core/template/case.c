/* Upper, lower and title case of texts, as in Python's str. */
#include "base/utf8.h"
#include "template/internal.h"

#include <string.h>
#include <utf8proc.h>

/* Characters that map to several (Unicode's SpecialCasing.txt, the rules that hold in all
 * languages), in upper case and in title case. */
static const struct special {
    int32_t code;
    const char *upper, *title;
} SPECIAL[] = {
    {0x00DF, "SS", "Ss"}, {0x0149, "ʼN", "ʼN"}, {0x01F0, "J̌", "J̌"},   {0x0390, "Ϊ́", "Ϊ́"},     {0x03B0, "Ϋ́", "Ϋ́"},
    {0x0587, "ԵՒ", "Եւ"}, {0x1E96, "H̱", "H̱"},   {0x1E97, "T̈", "T̈"},   {0x1E98, "W̊", "W̊"},     {0x1E99, "Y̊", "Y̊"},
    {0x1E9A, "Aʾ", "Aʾ"}, {0x1F50, "Υ̓", "Υ̓"},   {0x1F52, "Υ̓̀", "Υ̓̀"},   {0x1F54, "Υ̓́", "Υ̓́"},     {0x1F56, "Υ̓͂", "Υ̓͂"},
    {0x1F80, "ἈΙ", "ᾈ"},  {0x1F81, "ἉΙ", "ᾉ"},  {0x1F82, "ἊΙ", "ᾊ"},  {0x1F83, "ἋΙ", "ᾋ"},    {0x1F84, "ἌΙ", "ᾌ"},
    {0x1F85, "ἍΙ", "ᾍ"},  {0x1F86, "ἎΙ", "ᾎ"},  {0x1F87, "ἏΙ", "ᾏ"},  {0x1F88, "ἈΙ", "ᾈ"},    {0x1F89, "ἉΙ", "ᾉ"},
    {0x1F8A, "ἊΙ", "ᾊ"},  {0x1F8B, "ἋΙ", "ᾋ"},  {0x1F8C, "ἌΙ", "ᾌ"},  {0x1F8D, "ἍΙ", "ᾍ"},    {0x1F8E, "ἎΙ", "ᾎ"},
    {0x1F8F, "ἏΙ", "ᾏ"},  {0x1F90, "ἨΙ", "ᾘ"},  {0x1F91, "ἩΙ", "ᾙ"},  {0x1F92, "ἪΙ", "ᾚ"},    {0x1F93, "ἫΙ", "ᾛ"},
    {0x1F94, "ἬΙ", "ᾜ"},  {0x1F95, "ἭΙ", "ᾝ"},  {0x1F96, "ἮΙ", "ᾞ"},  {0x1F97, "ἯΙ", "ᾟ"},    {0x1F98, "ἨΙ", "ᾘ"},
    {0x1F99, "ἩΙ", "ᾙ"},  {0x1F9A, "ἪΙ", "ᾚ"},  {0x1F9B, "ἫΙ", "ᾛ"},  {0x1F9C, "ἬΙ", "ᾜ"},    {0x1F9D, "ἭΙ", "ᾝ"},
    {0x1F9E, "ἮΙ", "ᾞ"},  {0x1F9F, "ἯΙ", "ᾟ"},  {0x1FA0, "ὨΙ", "ᾨ"},  {0x1FA1, "ὩΙ", "ᾩ"},    {0x1FA2, "ὪΙ", "ᾪ"},
    {0x1FA3, "ὫΙ", "ᾫ"},  {0x1FA4, "ὬΙ", "ᾬ"},  {0x1FA5, "ὭΙ", "ᾭ"},  {0x1FA6, "ὮΙ", "ᾮ"},    {0x1FA7, "ὯΙ", "ᾯ"},
    {0x1FA8, "ὨΙ", "ᾨ"},  {0x1FA9, "ὩΙ", "ᾩ"},  {0x1FAA, "ὪΙ", "ᾪ"},  {0x1FAB, "ὫΙ", "ᾫ"},    {0x1FAC, "ὬΙ", "ᾬ"},
    {0x1FAD, "ὭΙ", "ᾭ"},  {0x1FAE, "ὮΙ", "ᾮ"},  {0x1FAF, "ὯΙ", "ᾯ"},  {0x1FB2, "ᾺΙ", "Ὰͅ"},    {0x1FB3, "ΑΙ", "ᾼ"},
    {0x1FB4, "ΆΙ", "Άͅ"},  {0x1FB6, "Α͂", "Α͂"},   {0x1FB7, "Α͂Ι", "ᾼ͂"},  {0x1FBC, "ΑΙ", "ᾼ"},    {0x1FC2, "ῊΙ", "Ὴͅ"},
    {0x1FC3, "ΗΙ", "ῌ"},  {0x1FC4, "ΉΙ", "Ήͅ"},  {0x1FC6, "Η͂", "Η͂"},   {0x1FC7, "Η͂Ι", "ῌ͂"},    {0x1FCC, "ΗΙ", "ῌ"},
    {0x1FD2, "Ϊ̀", "Ϊ̀"},   {0x1FD3, "Ϊ́", "Ϊ́"},   {0x1FD6, "Ι͂", "Ι͂"},   {0x1FD7, "Ϊ͂", "Ϊ͂"},     {0x1FE2, "Ϋ̀", "Ϋ̀"},
    {0x1FE3, "Ϋ́", "Ϋ́"},   {0x1FE4, "Ρ̓", "Ρ̓"},   {0x1FE6, "Υ͂", "Υ͂"},   {0x1FE7, "Ϋ͂", "Ϋ͂"},     {0x1FF2, "ῺΙ", "Ὼͅ"},
    {0x1FF3, "ΩΙ", "ῼ"},  {0x1FF4, "ΏΙ", "Ώͅ"},  {0x1FF6, "Ω͂", "Ω͂"},   {0x1FF7, "Ω͂Ι", "ῼ͂"},    {0x1FFC, "ΩΙ", "ῼ"},
    {0xFB00, "FF", "Ff"}, {0xFB01, "FI", "Fi"}, {0xFB02, "FL", "Fl"}, {0xFB03, "FFI", "Ffi"}, {0xFB04, "FFL", "Ffl"},
    {0xFB05, "ST", "St"}, {0xFB06, "ST", "St"}, {0xFB13, "ՄՆ", "Մն"}, {0xFB14, "ՄԵ", "Մե"},   {0xFB15, "ՄԻ", "Մի"},
    {0xFB16, "ՎՆ", "Վն"}, {0xFB17, "ՄԽ", "Մխ"},
};

static const char *special_case(int32_t ch, bool title)
{
    for (size_t i = 0; ch >= SPECIAL[0].code && i < sizeof SPECIAL / sizeof *SPECIAL; i++)
        if (SPECIAL[i].code == ch) return title ? SPECIAL[i].title : SPECIAL[i].upper;
    return NULL;
}

static bool is_cased(int32_t c)
{
    const utf8proc_category_t k = utf8proc_category(c);
    return k == UTF8PROC_CATEGORY_LU || k == UTF8PROC_CATEGORY_LL || k == UTF8PROC_CATEGORY_LT || utf8proc_tolower(c) != c ||
           utf8proc_toupper(c) != c || c == 0xAA || c == 0xBA;
}

/* Returns whether a character does not end a word for a final sigma: marks, modifiers, and
 * punctuation inside words. */
static bool is_passed_over(int32_t c)
{
    static const int32_t INSIDE[] = {0x27,   0x2E,   0x3A,   0xB7,   0x387,  0x55F,  0x5F4,  0x2018, 0x2019,
                                     0x2024, 0x2027, 0xFE13, 0xFE52, 0xFE55, 0xFF07, 0xFF0E, 0xFF1A};
    for (size_t i = 0; i < sizeof INSIDE / sizeof *INSIDE; i++)
        if (INSIDE[i] == c) return true;
    switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
        return true;
    default:
        return false;
    }
}

struct span {
    const unsigned char *begin, *end;
};

/* Returns the character before p and moves p to it. */
static int32_t step_back(const unsigned char **p)
{
    const unsigned char *q;
    do {
        --*p;
    } while ((**p & 0xC0) == 0x80);
    q = *p;
    return utf8_next(&q);
}

/* Returns whether a capital sigma at p ends a word of the span. */
static bool ends_word(struct span s, const unsigned char *p)
{
    const unsigned char *back = p, *on = p;
    bool cased = false;
    while (back > s.begin) {
        const int32_t c = step_back(&back);
        if (is_passed_over(c)) continue;
        cased = is_cased(c);
        break;
    }
    if (!cased) return false;
    utf8_next(&on);
    while (on < s.end) {
        const int32_t c = utf8_next(&on);
        if (!is_passed_over(c)) return !is_cased(c);
    }
    return true;
}

static int put_lower(char *out, struct span s, const unsigned char *p, int32_t ch)
{
    if (ch == 0x130) return memcpy(out, "i\xCC\x87", 3), 3;
    return utf8_put(out, ch == 0x3A3 && ends_word(s, p) ? 0x3C2 : utf8proc_tolower(ch));
}

static int put_raised(char *out, int32_t ch, bool title)
{
    const char *more = special_case(ch, title);
    if (!more) return utf8_put(out, title ? utf8proc_totitle(ch) : utf8proc_toupper(ch));
    memcpy(out, more, strlen(more));
    return (int)strlen(more);
}

static bool begins_word(int32_t ch)
{
    return value_is_python_space(ch) || (ch > 0 && ch < 128 && strchr("-({[<", ch));
}

tare_status template_change_case(struct call *c, enum text_case how, struct value *out)
{
    tare_text text;
    TRY(template_as_text(c->r, c->line, c->self, &text));
    OWNED(str_free) struct str changed = {0};
    TRY(render_spend(c->r, c->line, text.size / 8));
    /* a mapped character is at most three times as long */
    TRY(str_reserve(&changed, 3 * text.size + 8, c->r->e));
    /* inside a word (title, words), or past the first character (capitalize) */
    bool inside = false;
    struct span s = {(const unsigned char *)text.data, (const unsigned char *)text.data + text.size};
    for (const unsigned char *p = s.begin, *at = p; p < s.end; at = p) {
        const int32_t ch = utf8_next(&p);
        const bool raise = how == CASE_UPPER || (how != CASE_LOWER && !inside);
        char *to = changed.data + changed.size;
        changed.size += raise ? put_raised(to, ch, how == CASE_TITLE || how == CASE_CAPITAL) : put_lower(to, s, at, ch);
        /* the title filter lower-cases the rest of a word separately */
        if (how == CASE_WORDS && !inside) s.begin = p;
        inside = how == CASE_CAPITAL || (how == CASE_WORDS ? !begins_word(ch) : is_cased(ch));
    }
    return template_keep_text(c->r, c->line, &changed, out);
}
