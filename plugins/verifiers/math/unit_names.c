/* The units of measure: their spellings, alone and after a prefix, and their value in base
 * units. */
#include "units.h"

#include <string.h>

/* Lengths, masses, times and derived units take the listed prefixes; currencies and counted things
 * take none. The factors are exact: by / over * 10^ten of the base, which is a product of base
 * units. */
static const struct unit_kind {
    const char *symbols, *words; /* separated by blanks; words also with an s at the end */
    const char *prefixes;
    const char *base;
    int64_t by, over;
    int ten;
} KINDS[] = {
    {NULL, NULL, "", NULL, 1, 1, 0},
    {"m", "meter metre", "pn\\mcdk", NULL, 1, 1, 0},
    {"g", "gram gramme", "n\\mck", NULL, 1, 1, 0},
    {"s sec", "second", "pn\\m", NULL, 1, 1, 0},
    {"A amp", "ampere amp", "n\\mk", NULL, 1, 1, 0},
    {"K", "kelvin", "", NULL, 1, 1, 0},
    {"mol", "mole", "n\\mk", NULL, 1, 1, 0},
    {"rad", "radian", "m", NULL, 1, 1, 0},
    {"in", "inch inches", "", "m", 254, 1, -4},
    {"ft", "foot feet", "", "m", 3048, 1, -4},
    {"yd", "yard", "", "m", 9144, 1, -4},
    {"mi", "mile", "", "m", 1609344, 1, -3},
    {"lb lbs", "", "", "g", 45359237, 1, -5},
    {"pound", "pound", "", "g", 45359237, 1, -5},
    {"oz", "ounce", "", "g", 28349523125, 1, -9},
    {"t", "ton tonne", "kM", "g", 1, 1, 6},
    {"min mins", "minute", "", "s", 60, 1, 0},
    {"h hr hrs", "hour", "", "s", 3600, 1, 0},
    {"day", "day", "", "s", 86400, 1, 0},
    {"week wk", "week", "", "s", 604800, 1, 0},
    {"month", "month", "", NULL, 1, 1, 0},
    {"year yr yrs", "year", "", "month", 12, 1, 0},
    {"decade", "decade", "", "month", 120, 1, 0},
    {"century", "century centuries", "", "month", 1200, 1, 0},
    {"am", "", "", NULL, 1, 1, 0},
    {"pm", "", "", NULL, 1, 1, 0},
    {"L l", "liter litre", "\\mcd", "m^3", 1, 1, -3},
    {"cc", "", "", "m^3", 1, 1, -6},
    {"gal", "gallon", "", "pint", 8, 1, 0},
    {"quart qt", "quart", "", "pint", 2, 1, 0},
    {"pint pt", "pint", "", NULL, 1, 1, 0},
    {"cup", "cup", "", "pint", 1, 2, 0},
    {"ha", "hectare", "", "m^2", 1, 1, 4},
    {"acre", "acre", "", NULL, 1, 1, 0},
    {"mph", "", "", "m/s", 1609344, 3600, -3},
    {"kph kmph kmh", "", "", "m/s", 1000, 3600, 0},
    {"knot", "knot", "", "m/s", 1852, 3600, 0},
    {"Hz", "hertz", "mkMGT", "s^-1", 1, 1, 0},
    {"N", "newton", "\\mkM", "g m/s^2", 1, 1, 3},
    {"J", "joule", "n\\mkMGT", "g m^2/s^2", 1, 1, 3},
    {"W", "watt", "n\\mkMGT", "g m^2/s^3", 1, 1, 3},
    {"Pa", "pascal", "kMG", "g m^-1 s^-2", 1, 1, 3},
    {"bar", "bar", "m", "g m^-1 s^-2", 1, 1, 8},
    {"atm", "atmosphere", "", "g m^-1 s^-2", 101325, 1, 3},
    {"C", "coulomb", "pn\\mk", "A s", 1, 1, 0},
    {"V", "volt", "n\\mkM", "g m^2 s^-3 A^-1", 1, 1, 3},
    {"ohm", "ohm", "mkM", "g m^2 s^-3 A^-2", 1, 1, 3},
    {"F", "farad", "pn\\m", "A^2 s^4 g^-1 m^-2", 1, 1, -3},
    {"T", "tesla", "n\\m", "g s^-2 A^-1", 1, 1, 3},
    {"Wb", "weber", "\\m", "g m^2 s^-2 A^-1", 1, 1, 3},
    {"", "henry", "\\m", "g m^2 s^-2 A^-2", 1, 1, 3},
    {"cal", "calorie", "k", "g m^2/s^2", 4184, 1, 0},
    {"eV", "electronvolt", "mkMG", NULL, 1, 1, 0},
    {"erg", "erg", "", "g m^2/s^2", 1, 1, -4},
    {"M", "molar", "\\m", "mol m^-3", 1, 1, 3},
    {"amu", "", "", NULL, 1, 1, 0},
    {"AU", "", "", NULL, 1, 1, 0},
    {"pc", "parsec", "kMG", NULL, 1, 1, 0},
    {"ly", "", "", NULL, 1, 1, 0},
    {"", "byte", "", NULL, 1, 1, 0},
    {"bit", "bit", "", NULL, 1, 1, 0},
    {"degc", "", "", NULL, 1, 1, 0},
    {"degf", "", "", NULL, 1, 1, 0},
    {"dollar USD usd", "dollar buck", "", NULL, 1, 1, 0},
    {"cent", "cent", "", "dollar", 1, 1, -2},
    {"euro EUR eur", "euro Euro", "", NULL, 1, 1, 0},
    {"sterling GBP", "", "", NULL, 1, 1, 0},
    {"pence p", "penny pence", "", "sterling", 1, 1, -2},
    {"yuan RMB CNY", "yuan", "", NULL, 1, 1, 0},
    {"yen JPY", "yen", "", NULL, 1, 1, 0},
    {"won", "", "", NULL, 1, 1, 0},
    {"rupee Rs INR", "rupee", "", NULL, 1, 1, 0},
    {"unit", "unit", "", NULL, 1, 1, 0},
    {"people", "people person", "", NULL, 1, 1, 0},
    {"student", "student", "", NULL, 1, 1, 0},
    {"way", "way", "", NULL, 1, 1, 0},
    {"time", "time", "", NULL, 1, 1, 0},
    {"point", "point", "", NULL, 1, 1, 0},
    {"book", "book", "", NULL, 1, 1, 0},
};
enum { N_KINDS = sizeof KINDS / sizeof *KINDS };

static const struct prefix {
    const char *symbol, *word;
    int power;
} PREFIXES[] = {
    {"", "", 0},       {"p", "pico", -12}, {"n", "nano", -9}, {"\\mu", "micro", -6}, {"m", "milli", -3}, {"c", "centi", -2},
    {"d", "deci", -1}, {"k", "kilo", 3},   {"M", "mega", 6},  {"G", "giga", 9},      {"T", "tera", 12},
};
enum { N_PREFIXES = sizeof PREFIXES / sizeof *PREFIXES };

/* Symbols that are units right after a number, where other letters are factors: 5cm, but not 5m,
 * 3pV. */
static const char BARE[] =
    "cm mm km dm nm kg mg ft yd lb lbs oz ms hr hrs yr mins mL ml mph kph Hz kHz MHz GHz kJ kW kV mV mA Pa kPa mol eV keV MeV Wb atm amu AU pc kpc Mpc kcal usd USD eur EUR Euro GBP rad ohm erg day week month year gal cup unit yuan yen won acre quart pint cent dollar euro rupee people student way time point book kN";

/* Returns whether s is one of the words of the list; plural: also with an s after it. */
static bool is_spelled(const char *list, const char *s, int64_t n, bool plural)
{
    for (const char *w = list; w && *w;) {
        const int64_t size = (int64_t)strcspn(w, " ");
        if (w[0] == s[0] && !memcmp(w, s, (size_t)(size < n ? size : n)) &&
            (size == n || (plural && n == size + 1 && s[size] == 's')))
            return true;
        w += size + (w[size] == ' ');
    }
    return false;
}

static bool takes_prefix(const struct unit_kind *kind, int prefix)
{
    const char letter = PREFIXES[prefix].symbol[0];
    return !prefix || strchr(kind->prefixes, letter) != NULL;
}

/* Returns the kind for which the n bytes at s are a symbol or a word; 0: none. */
static int kind_of(const char *s, int64_t n, int prefix, bool word)
{
    for (int k = 1; k < N_KINDS && n > 0; k++)
        if (takes_prefix(&KINDS[k], prefix) &&
            (word ? is_spelled(KINDS[k].words, s, n, true) : is_spelled(KINDS[k].symbols, s, n, false)))
            return k;
    return 0;
}

struct unit_name find_unit(const char *s, int64_t n, bool in_text)
{
    for (int p = 0; p < N_PREFIXES && n < 24; p++)
        for (int word = 0; word < 2; word++) {
            const char *front = word ? PREFIXES[p].word : PREFIXES[p].symbol;
            const int64_t size = (int64_t)strlen(front);
            if (size >= n || memcmp(front, s, (size_t)size) != 0) continue;
            const int k = kind_of(s + size, n - size, p, word);
            if (k && (word || in_text || is_spelled(BARE, s, n, false))) return (struct unit_name){(uint8_t)k, (int8_t)p};
        }
    return (struct unit_name){0, 0};
}

bool unit_is(struct unit_name u, const char *symbol)
{
    return u.kind && !u.prefix && is_spelled(KINDS[u.kind].symbols, symbol, (int64_t)strlen(symbol), false);
}

bool unit_is_money(struct unit_name u)
{
    static const char money[] = "dollar cent euro sterling pence pound yuan yen won rupee";
    return u.kind && is_spelled(money, KINDS[u.kind].symbols, (int64_t)strcspn(KINDS[u.kind].symbols, " "), false);
}

int unit_spell(struct unit_name u, const char **prefix, const char **symbol)
{
    *prefix = PREFIXES[u.prefix].symbol;
    *symbol = *KINDS[u.kind].symbols ? KINDS[u.kind].symbols : KINDS[u.kind].words;
    if (!*KINDS[u.kind].symbols) *prefix = PREFIXES[u.prefix].word;
    return (int)strcspn(*symbol, " ");
}

const char *unit_base(struct unit_name u, int64_t *by, int64_t *over, int *ten)
{
    *by = KINDS[u.kind].by, *over = KINDS[u.kind].over, *ten = KINDS[u.kind].ten + PREFIXES[u.prefix].power;
    return KINDS[u.kind].base;
}
