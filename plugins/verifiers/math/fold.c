/* Maps non-ASCII characters, and some HTML entities, to their TeX spelling. */
#include "math.h"

#include <stdlib.h>
#include <string.h>

struct character {
    uint32_t code;
    const char *tex;
};

/* sorted by code */
static const struct character FOLD[] = {
    {0xA0, " "},
    {0xA2, "\\cents "},
    {0xA3, "\\pounds "},
    {0xA5, "\\yen "},
    {0xAC, "\\neg "},
    {0xB0, "^{\\circ}"},
    {0xB1, "\\pm "},
    {0xB2, "^{2}"},
    {0xB3, "^{3}"},
    {0xB5, "\\micro "},
    {0xB7, "\\cdot "},
    {0xB9, "^{1}"},
    {0xBA, "^{\\circ}"},
    {0xBC, "\\frac{1}{4}"},
    {0xBD, "\\frac{1}{2}"},
    {0xBE, "\\frac{3}{4}"},
    {0xD7, "\\times "},
    {0xF7, "\\div "},
    {0x2B9, "'"},
    {0x2BC, "'"},
    {0x2DA, "^{\\circ}"},
    {0x301, ""},
    {0x391, "A"},
    {0x392, "B"},
    {0x393, "\\Gamma "},
    {0x394, "\\Delta "},
    {0x395, "E"},
    {0x396, "Z"},
    {0x397, "H"},
    {0x398, "\\Theta "},
    {0x399, "I"},
    {0x39A, "K"},
    {0x39B, "\\Lambda "},
    {0x39C, "M"},
    {0x39D, "N"},
    {0x39E, "\\Xi "},
    {0x39F, "O"},
    {0x3A0, "\\Pi "},
    {0x3A1, "P"},
    {0x3A3, "\\Sigma "},
    {0x3A4, "T"},
    {0x3A5, "\\Upsilon "},
    {0x3A6, "\\Phi "},
    {0x3A7, "X"},
    {0x3A8, "\\Psi "},
    {0x3A9, "\\Omega "},
    {0x3B1, "\\alpha "},
    {0x3B2, "\\beta "},
    {0x3B3, "\\gamma "},
    {0x3B4, "\\delta "},
    {0x3B5, "\\epsilon "},
    {0x3B6, "\\zeta "},
    {0x3B7, "\\eta "},
    {0x3B8, "\\theta "},
    {0x3B9, "\\iota "},
    {0x3BA, "\\kappa "},
    {0x3BB, "\\lambda "},
    {0x3BC, "\\mu "},
    {0x3BD, "\\nu "},
    {0x3BE, "\\xi "},
    {0x3BF, "o"},
    {0x3C0, "\\pi "},
    {0x3C1, "\\rho "},
    {0x3C2, "\\sigma "},
    {0x3C3, "\\sigma "},
    {0x3C4, "\\tau "},
    {0x3C5, "\\upsilon "},
    {0x3C6, "\\phi "},
    {0x3C7, "\\chi "},
    {0x3C8, "\\psi "},
    {0x3C9, "\\omega "},
    {0x3D1, "\\theta "},
    {0x3D5, "\\phi "},
    {0x3F1, "\\rho "},
    {0x3F5, "\\epsilon "},
    {0x2000, " "},
    {0x2001, " "},
    {0x2002, " "},
    {0x2003, " "},
    {0x2004, " "},
    {0x2005, " "},
    {0x2006, "\\,"},
    {0x2007, " "},
    {0x2008, "\\,"},
    {0x2009, "\\,"},
    {0x200A, "\\,"},
    {0x2010, "-"},
    {0x2011, "-"},
    {0x2012, "-"},
    {0x2013, "-"},
    {0x2018, "'"},
    {0x2019, "'"},
    {0x201C, "\""},
    {0x201D, "\""},
    {0x2022, "\\cdot "},
    {0x2026, "\\ldots "},
    {0x2028, " "},
    {0x202F, "\\,"},
    {0x2030, "\\permille "},
    {0x2032, "'"},
    {0x2033, "''"},
    {0x2043, "-"},
    {0x2044, "/"},
    {0x205F, " "},
    {0x2061, ""},
    {0x2062, ""},
    {0x2063, ","},
    {0x2070, "^{0}"},
    {0x2071, "^{i}"},
    {0x207A, "^{+}"},
    {0x207B, "^{-}"},
    {0x207F, "^{n}"},
    {0x20A9, "\\won "},
    {0x20AC, "\\euro "},
    {0x20B9, "\\rupee "},
    {0x2102, "\\mathbb{C}"},
    {0x2103, "^{\\circ}C"},
    {0x2109, "^{\\circ}F"},
    {0x210F, "\\hbar "},
    {0x2113, "\\ell "},
    {0x2115, "\\mathbb{N}"},
    {0x211A, "\\mathbb{Q}"},
    {0x211D, "\\mathbb{R}"},
    {0x2124, "\\mathbb{Z}"},
    {0x2126, "\\Omega "},
    {0x212B, "\\AA "},
    {0x212F, "e"},
    {0x2135, "\\aleph "},
    {0x2147, "e"},
    {0x2148, "i"},
    {0x2150, "\\frac{1}{7}"},
    {0x2151, "\\frac{1}{9}"},
    {0x2152, "\\frac{1}{10}"},
    {0x2153, "\\frac{1}{3}"},
    {0x2154, "\\frac{2}{3}"},
    {0x2155, "\\frac{1}{5}"},
    {0x2156, "\\frac{2}{5}"},
    {0x2157, "\\frac{3}{5}"},
    {0x2158, "\\frac{4}{5}"},
    {0x2159, "\\frac{1}{6}"},
    {0x215A, "\\frac{5}{6}"},
    {0x215B, "\\frac{1}{8}"},
    {0x215C, "\\frac{3}{8}"},
    {0x215D, "\\frac{5}{8}"},
    {0x215E, "\\frac{7}{8}"},
    {0x2189, "\\frac{0}{3}"},
    {0x2192, "\\to "},
    {0x21A6, "\\to "},
    {0x21D2, "\\Rightarrow "},
    {0x21D4, "\\Leftrightarrow "},
    {0x2200, "\\forall "},
    {0x2202, "\\partial "},
    {0x2203, "\\exists "},
    {0x2205, "\\emptyset "},
    {0x2206, "\\Delta "},
    {0x2207, "\\nabla "},
    {0x2208, "\\in "},
    {0x2209, "\\notin "},
    {0x220F, "\\prod "},
    {0x2211, "\\sum "},
    {0x2212, "-"},
    {0x2213, "\\mp "},
    {0x2215, "/"},
    {0x2216, "\\setminus "},
    {0x2217, "*"},
    {0x2218, "\\circ "},
    {0x2219, "\\cdot "},
    {0x221A, "\\sqrt "},
    {0x221B, "\\cbrt "},
    {0x221C, "\\sqrt[4]"},
    {0x221E, "\\infty "},
    {0x2220, "\\angle "},
    {0x2223, "|"},
    {0x2225, "\\parallel "},
    {0x2227, "\\land "},
    {0x2228, "\\lor "},
    {0x2229, "\\cap "},
    {0x222A, "\\cup "},
    {0x222B, "\\int "},
    {0x2234, "\\therefore "},
    {0x2236, ":"},
    {0x223C, "\\sim "},
    {0x2243, "\\simeq "},
    {0x2245, "\\cong "},
    {0x2248, "\\approx "},
    {0x2260, "\\neq "},
    {0x2261, "\\equiv "},
    {0x2264, "\\leq "},
    {0x2265, "\\geq "},
    {0x2266, "\\leq "},
    {0x2267, "\\geq "},
    {0x2282, "\\subset "},
    {0x2283, "\\supset "},
    {0x2286, "\\subseteq "},
    {0x2287, "\\supseteq "},
    {0x2295, "\\oplus "},
    {0x2297, "\\otimes "},
    {0x22A5, "\\perp "},
    {0x22C5, "\\cdot "},
    {0x22C6, "\\star "},
    {0x22EF, "\\cdots "},
    {0x2308, "\\lceil "},
    {0x2309, "\\rceil "},
    {0x230A, "\\lfloor "},
    {0x230B, "\\rfloor "},
    {0x25B3, "\\triangle "},
    {0x2715, "\\times "},
    {0x27E8, "\\langle "},
    {0x27E9, "\\rangle "},
    {0x27F6, "\\to "},
    {0x27F9, "\\implies "},
    {0x27FA, "\\iff "},
    {0x2A2F, "\\times "},
    {0x2A7D, "\\leq "},
    {0x2A7E, "\\geq "},
    {0x3000, " "},
    {0x3001, ","},
    {0x3002, "."},
    {0xFE58, "-"},
    {0xFE63, "-"},
    {0x1D6D1, "\\pi "},
};

/* HTML's &name; the number is the character's code. */
static const struct {
    const char *name;
    uint32_t code;
} ENTITIES[] = {
    {"amp", '&'},      {"lt", '<'},       {"gt", '>'},      {"quot", '"'},     {"nbsp", 0xA0},    {"thinsp", 0x2009},
    {"deg", 0xB0},     {"plusmn", 0xB1},  {"middot", 0xB7}, {"times", 0xD7},   {"divide", 0xF7},  {"minus", 0x2212},
    {"ndash", 0x2013}, {"pi", 0x3C0},     {"theta", 0x3B8}, {"alpha", 0x3B1},  {"beta", 0x3B2},   {"sup2", 0xB2},
    {"sup3", 0xB3},    {"frac12", 0xBD},  {"frac14", 0xBC}, {"frac34", 0xBE},  {"radic", 0x221A}, {"infin", 0x221E},
    {"le", 0x2264},    {"ge", 0x2265},    {"ne", 0x2260},   {"asymp", 0x2248}, {"cap", 0x2229},   {"cup", 0x222A},
    {"isin", 0x2208},  {"empty", 0x2205}, {"euro", 0x20AC}, {"pound", 0xA3},   {"sum", 0x2211},
};

static int64_t decode_character(const unsigned char *p, int64_t left, uint32_t *code)
{
    const int n = p[0] < 0xC2 ? 0 : p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : p[0] < 0xF5 ? 4 : 0;
    if (!n || n > left) return 0;
    uint32_t c = p[0] & (0xFFU >> (n + 1));
    for (int i = 1; i < n; i++) {
        if ((p[i] & 0xC0) != 0x80) return 0;
        c = c << 6 | (p[i] & 0x3FU);
    }
    *code = c;
    return n;
}

static int by_code(const void *key, const void *element)
{
    const uint32_t a = *(const uint32_t *)key, b = ((const struct character *)element)->code;
    return (a > b) - (a < b);
}

static const char *fold_character(uint32_t c, char small[16])
{
    if ((c >= 0x200B && c <= 0x200F) || (c >= 0x202A && c <= 0x202E) || (c >= 0x2060 && c <= 0x2069 && c != 0x2063) ||
        (c >= 0xFE00 && c <= 0xFE0F) || c == 0xFEFF || c == 0xAD)
        return ""; /* zero width: joiners, directions, variants */
    /* mathematical Greek, alphabets of 58: maps to the plain alphabet */
    if (c >= 0x1D6A8 && c < 0x1D7CC)
        c = (c - 0x1D6A8) % 58 < 25   ? 0x391 + (c - 0x1D6A8) % 58
            : (c - 0x1D6A8) % 58 < 26 ? 0x2207
                                      : 0x3B1 + (c - 0x1D6A8) % 58 - 26;
    const char ascii = c >= 0xFF01 && c <= 0xFF5E     ? (char)(c - 0xFEE0)
                       : c >= 0x1D7CE && c <= 0x1D7FF ? (char)('0' + (c - 0x1D7CE) % 10)
                       : c >= 0x1D400 && c < 0x1D6A4  ? "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"[(c - 0x1D400) % 52]
                                                      : 0;
    if (ascii) {
        small[0] = ascii, small[1] = 0;
        return small;
    }
    /* the caller joins runs of these */
    if (c >= 0x2070 && c <= 0x2089 && (c & 0xF) <= 9 && c != 0x2071) {
        memcpy(small, c < 0x2080 ? "^{?}" : "_{?}", 5);
        small[2] = (char)('0' + (c & 0xF));
        return small;
    }
    const struct character *found = bsearch(&c, FOLD, sizeof FOLD / sizeof *FOLD, sizeof *FOLD, by_code);
    /* pictures */
    if (!found && ((c >= 0x1F000 && c <= 0x1FAFF) || (c >= 0x2600 && c <= 0x27BF))) return " ";
    return found ? found->tex : NULL;
}

/* Returns the character for &name; or &#123; at the start of s, and its length; 0: none. */
static int64_t read_entity(const char *s, int64_t n, uint32_t *code)
{
    int64_t k = 1;
    uint32_t value = 0;
    if (k < n && s[k] == '#') {
        const bool hex = k + 1 < n && text_lower(s[k + 1]) == 'x';
        for (k += 1 + hex; k < n && k < 10; k++) {
            const char c = text_lower(s[k]);
            if (!text_is_digit(c) && !(hex && c >= 'a' && c <= 'f')) break;
            value = value * (hex ? 16 : 10) + (uint32_t)(text_is_digit(c) ? c - '0' : c - 'a' + 10);
        }
        *code = value;
        return k < n && s[k] == ';' && value ? k + 1 : 0;
    }
    while (k < n && k < 10 && (text_is_letter(s[k]) || text_is_digit(s[k]))) k++;
    if (k >= n || s[k] != ';') return 0;
    for (size_t i = 0; i < sizeof ENTITIES / sizeof *ENTITIES; i++)
        if ((int64_t)strlen(ENTITIES[i].name) == k - 1 && !memcmp(ENTITIES[i].name, s + 1, (size_t)k - 1))
            return *code = ENTITIES[i].code, k + 1;
    return 0;
}

int64_t fold_tex(struct math *m, tare_text t, char *out, int64_t capacity)
{
    (void)m;
    int64_t n = 0;
    for (int64_t i = 0; i < t.size;) {
        const unsigned char c = (unsigned char)t.data[i];
        char small[16];
        uint32_t code = 0;
        int64_t used = c == '&'   ? read_entity(t.data + i, t.size - i, &code)
                       : c < 0x80 ? 0
                                  : decode_character((const unsigned char *)t.data + i, t.size - i, &code);
        const char *s = used ? fold_character(code, small) : NULL;
        if (used && !s && code < 0x80) small[0] = (char)code, small[1] = 0, s = small;
        if (!s) { /* ASCII, or a character without a meaning here: kept, and refused by the lexer */
            if (!used) used = 1;
            if (n + used > capacity) return -1;
            memcpy(out + n, t.data + i, (size_t)used);
            n += used;
        } else {
            const int64_t size = (int64_t)strlen(s);
            if (n + size > capacity) return -1;
            /* x^{1}^{2} from two raised digits becomes x^{12} */
            const bool join = size == 4 && (s[0] == '^' || s[0] == '_') && n > 3 && out[n - 1] == '}' &&
                              (text_is_digit(out[n - 2]) || out[n - 2] == '-') && i > 1 && (unsigned char)t.data[i - 1] >= 0x80;
            if (join)
                n--, memcpy(out + n, s + 2, 2), n += 2;
            else
                memcpy(out + n, s, (size_t)size), n += size;
        }
        i += used;
    }
    return n;
}
