/* Counts sentences and words in capitals. */
#include "sentences.h"

#include <string.h>

static bool is_closing(int32_t c)
{
    return c == '"' || c == '\'' || c == ')' || c == ']' || c == '*' || c == 0x201D || c == 0x2019;
}

/* Returns whether the word before a full stop at `end` does not end a sentence: a title, an
 * initial, or letters with inner full stops. */
static bool is_abbreviation(tare_text t, int64_t end)
{
    static const char *const WORDS[] = {"mr",  "mrs", "ms", "dr", "prof", "st",  "vs",  "etc", "jr", "sr",
                                        "inc", "ltd", "co", "no", "vol",  "gen", "col", "sen", "rep"};
    int64_t begin = end;
    while (begin > 0 && (text_is_letter(t.data[begin - 1]) || t.data[begin - 1] == '.')) begin--;
    const tare_text word = text_slice(t, begin, end);
    if (word.size == 1) return *word.data >= 'A' && *word.data <= 'Z' && *word.data != 'I';
    if (word.size && memchr(word.data, '.', (size_t)word.size) && word.size < 8 && *word.data != '.') return true;
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        if (text_equal(word, text_of(WORDS[i]), true)) return true;
    return false;
}

int64_t count_sentences(tare_text t)
{
    int64_t n = 0, at = 0;
    bool inside = false; /* text since the last sentence end */
    while (at < t.size) {
        const int64_t before = at;
        const int32_t c = char_next(t, &at);
        if (c != '.' && c != '!' && c != '?') {
            inside |= !char_is_space(c);
            continue;
        }
        int64_t next = at;
        while (at < t.size && strchr(".!?", t.data[at]) && t.data[at]) at++;
        const bool dots = at > next; /* several marks */
        for (next = at; next < t.size && is_closing(char_next(t, &next));) at = next;
        next = at;
        const int32_t follows = at < t.size ? char_next(t, &next) : ' ';
        inside = true;
        if (!char_is_space(follows)) continue;
        if (c == '.' && !dots && is_abbreviation(t, before) && at < t.size) continue;
        while (next < t.size && char_is_space(follows)) {
            const int64_t was = next;
            if (char_is_space(char_next(t, &next))) continue;
            next = was;
            break;
        }
        int64_t look = next;
        /* a lower-case letter continues the sentence */
        if (c == '.' && next < t.size && char_case(char_next(t, &look)) < 0) continue;
        n++;
        inside = false;
    }
    return n + inside;
}

static bool is_split(int32_t c)
{
    return c < 0x80 ? c > 0 && strchr(",;:@#$%&?!()[]{}<>\"`*", c)
                    : c == 0x2018 || c == 0x2019 || c == 0x201C || c == 0x201D || c == 0xAB || c == 0xBB;
}

static bool ends_with(tare_text t, const char *word)
{
    return text_starts(t, t.size - (int64_t)strlen(word), word, true) && t.size > (int64_t)strlen(word);
}

/* Counts tokens in capitals in a part without blanks and punctuation. The Treebank rules split off
 * 'S, 'LL and N'T, and each part counts. */
static int64_t count_capitals(tare_text piece)
{
    static const char *const ENDS[] = {"'s", "'m", "'d", "'ll", "'re", "'ve", "n't"};
    int64_t n = 0;
    /* the final full stop is a token */
    if (piece.size > 1 && piece.data[piece.size - 1] == '.') piece.size--;
    for (size_t i = 0; i < sizeof ENDS / sizeof *ENDS; i++) {
        if (!ends_with(piece, ENDS[i])) continue;
        const int64_t cut = piece.size - (int64_t)strlen(ENDS[i]);
        n = is_upper(text_slice(piece, cut, piece.size));
        piece.size = cut;
        break;
    }
    return n + is_upper(piece);
}

bool is_upper(tare_text t)
{
    bool up = false;
    for (int64_t at = 0; at < t.size;) {
        const int k = char_case(char_next(t, &at));
        if (k < 0) return false;
        up |= k > 0;
    }
    return up;
}

bool is_lower(tare_text t)
{
    bool down = false;
    for (int64_t at = 0; at < t.size;) {
        const int32_t c = char_next(t, &at);
        const int k = char_case(c);
        if (k > 0 || c == 0x1C5 || c == 0x1C8 || c == 0x1CB || c == 0x1F2) return false;
        down |= k < 0;
    }
    return down;
}

int64_t count_capital_words(tare_text t)
{
    int64_t n = 0, begin = 0;
    for (int64_t at = 0, before = 0; at <= t.size; before = at) {
        const bool end = at == t.size;
        const int32_t c = end ? ' ' : char_next(t, &at);
        const bool dashes = c == '-' && at < t.size && t.data[at] == '-', dots = c == '.' && text_starts(t, before, "..", false);
        const bool digits = (c == ',' || c == ':') && at < t.size && text_is_digit(t.data[at]);
        if (end || char_is_space(c) || dashes || dots || (is_split(c) && !digits)) {
            n += count_capitals(text_slice(t, begin, before));
            begin = at;
        }
        if (end) break;
    }
    return n;
}
