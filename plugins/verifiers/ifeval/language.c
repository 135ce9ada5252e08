/* Guesses the language of a response from its letters. The reference uses langdetect, whose letter
 * statistics are not available here: languages with a unique script are distinguished from all
 * others; those that share a script are refused or identified by the script alone. */
#include "ifeval.h"

#include <string.h>

enum script {
    LATIN,
    CYRILLIC,
    ARABIC,
    DEVANAGARI,
    HEBREW,
    BENGALI,
    GURMUKHI,
    GUJARATI,
    TAMIL,
    TELUGU,
    KANNADA,
    MALAYALAM,
    THAI,
    HANGUL,
    KANA,
    HAN,
    GREEK,
    OTHER
};

static const struct {
    int32_t first, last;
    enum script script;
} RANGES[] = {
    {'A', 'Z', LATIN},        {'a', 'z', LATIN},        {0xAA, 0x24F, LATIN},      {0x370, 0x3FF, GREEK},
    {0x400, 0x52F, CYRILLIC}, {0x590, 0x5FF, HEBREW},   {0x600, 0x77F, ARABIC},    {0x900, 0x97F, DEVANAGARI},
    {0x980, 0x9FF, BENGALI},  {0xA00, 0xA7F, GURMUKHI}, {0xA80, 0xAFF, GUJARATI},  {0xB80, 0xBFF, TAMIL},
    {0xC00, 0xC7F, TELUGU},   {0xC80, 0xCFF, KANNADA},  {0xD00, 0xD7F, MALAYALAM}, {0xE00, 0xE7F, THAI},
    {0x1100, 0x11FF, HANGUL}, {0x1E00, 0x1EFF, LATIN},  {0x3040, 0x30FF, KANA},    {0x3400, 0x9FFF, HAN},
    {0xAC00, 0xD7AF, HANGUL}, {0xFB50, 0xFDFF, ARABIC}, {0xFE70, 0xFEFF, ARABIC},
};

static const struct {
    const char *code;
    enum script script;
    bool own; /* no other langdetect language uses it */
} LANGUAGES[] = {
    {"en", LATIN, false},    {"es", LATIN, false},      {"pt", LATIN, false},      {"fr", LATIN, false},      {"de", LATIN, false},
    {"it", LATIN, false},    {"pl", LATIN, false},      {"vi", LATIN, false},      {"sw", LATIN, false},      {"fi", LATIN, false},
    {"ru", CYRILLIC, false}, {"uk", CYRILLIC, false},   {"bg", CYRILLIC, false},   {"ar", ARABIC, false},     {"ur", ARABIC, false},
    {"fa", ARABIC, false},   {"hi", DEVANAGARI, false}, {"mr", DEVANAGARI, false}, {"ne", DEVANAGARI, false}, {"he", HEBREW, true},
    {"bn", BENGALI, true},   {"pa", GURMUKHI, true},    {"gu", GUJARATI, true},    {"ta", TAMIL, true},       {"te", TELUGU, true},
    {"kn", KANNADA, true},   {"ml", MALAYALAM, true},   {"th", THAI, true},        {"ko", HANGUL, true},      {"ja", KANA, true},
};

static enum script script_of(int32_t c)
{
    for (size_t i = 0; i < sizeof RANGES / sizeof *RANGES; i++)
        if (c >= RANGES[i].first && c <= RANGES[i].last) return RANGES[i].script;
    return OTHER;
}

/* Returns whether more than half of the letters are in a script. Japanese also uses Chinese
 * characters, so some letters must be kana. */
static bool is_mostly(tare_text t, enum script script)
{
    int64_t letters = 0, of[OTHER + 1] = {0};
    for (int64_t at = 0; at < t.size;) {
        const int32_t c = char_next(t, &at);
        if (!char_is_word(c) || c == '_' || (c >= '0' && c <= '9')) continue;
        letters++;
        of[script_of(c)]++;
    }
    const int64_t n = of[script] + (script == KANA && of[KANA] ? of[HAN] : 0);
    return 2 * n > letters;
}

bool looks_english(tare_text t)
{
    return is_mostly(t, LATIN);
}

tare_status check_language(const struct ifeval_case *c, bool *followed, tare_error *error)
{
    tare_text code;
    const tare_status s = arg_text(c, "language", &code, error);
    if (s) return s;
    for (size_t i = 0; i < sizeof LANGUAGES / sizeof *LANGUAGES; i++) {
        if (!text_equal(code, text_of(LANGUAGES[i].code), false)) continue;
        if (!LANGUAGES[i].own && c->language == LANGUAGE_OWN)
            return tare_fail(
                error, TARE_E_CONFIG,
                "%s: \"%s\" shares its letters with other languages, and this program lacks the statistics that distinguish them (langdetect's); set language = script to decide by the letters alone, or language = skip to leave such instructions out",
                c->id, LANGUAGES[i].code);
        *followed = is_mostly(c->text, LANGUAGES[i].script);
        return TARE_OK;
    }
    return tare_fail(error, TARE_E_CONFIG, "%s: language = \"%.*s\": must be one of the data set's 30", c->id,
                     (int)(code.size < 40 ? code.size : 40), code.data);
}
