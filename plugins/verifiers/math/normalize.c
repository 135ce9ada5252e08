#include "math.h"

#include <string.h>

/* Characters that stand for a TeX spelling. */
static const struct {
    uint32_t code;
    const char *tex;
} FOLD[] = {
    {0xA0, " "},
    {0xB0, "^{\\circ}"},
    {0xB1, "\\pm "},
    {0xB2, "^{2}"},
    {0xB3, "^{3}"},
    {0xB5, "\\mu "},
    {0xB7, "\\cdot "},
    {0xB9, "^{1}"},
    {0xBC, "\\frac{1}{4}"},
    {0xBD, "\\frac{1}{2}"},
    {0xBE, "\\frac{3}{4}"},
    {0xD7, "\\times "},
    {0xF7, "\\div "},
    {0x391, "A"},
    {0x392, "B"},
    {0x393, "\\Gamma "},
    {0x394, "\\Delta "},
    {0x398, "\\Theta "},
    {0x39B, "\\Lambda "},
    {0x39E, "\\Xi "},
    {0x3A0, "\\Pi "},
    {0x3A3, "\\Sigma "},
    {0x3A6, "\\Phi "},
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
    {0x3C0, "\\pi "},
    {0x3C1, "\\rho "},
    {0x3C3, "\\sigma "},
    {0x3C4, "\\tau "},
    {0x3C5, "\\upsilon "},
    {0x3C6, "\\phi "},
    {0x3C7, "\\chi "},
    {0x3C8, "\\psi "},
    {0x3C9, "\\omega "},
    {0x3D5, "\\phi "},
    {0x3F5, "\\epsilon "},
    {0x2009, "\\,"},
    {0x200A, "\\,"},
    {0x202F, "\\,"},
    {0x2002, " "},
    {0x2003, " "},
    {0x2007, " "},
    {0x3000, " "},
    {0x2028, " "},
    {0x2010, "-"},
    {0x2011, "-"},
    {0x2012, "-"},
    {0x2013, "-"},
    {0x2212, "-"},
    {0xFE63, "-"},
    {0x2018, "'"},
    {0x2019, "'"},
    {0x2032, "'"},
    {0x2033, "''"},
    {0x2022, "\\cdot "},
    {0x2026, "\\ldots "},
    {0x2044, "/"},
    {0x2215, "/"},
    {0x2030, "\\permille "},
    {0x2070, "^{0}"},
    {0x2102, "\\mathbb{C}"},
    {0x2115, "\\mathbb{N}"},
    {0x211A, "\\mathbb{Q}"},
    {0x211D, "\\mathbb{R}"},
    {0x2124, "\\mathbb{Z}"},
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
    {0x2192, "\\to "},
    {0x2205, "\\emptyset "},
    {0x2208, "\\in "},
    {0x2209, "\\notin "},
    {0x2213, "\\mp "},
    {0x2216, "\\setminus "},
    {0x2217, "*"},
    {0x2218, "\\circ "},
    {0x2219, "\\cdot "},
    {0x221A, "\\sqrt "},
    {0x221B, "\\cbrt "},
    {0x221E, "\\infty "},
    {0x2223, "|"},
    {0x2227, "\\land "},
    {0x2228, "\\lor "},
    {0x2229, "\\cap "},
    {0x222A, "\\cup "},
    {0x2236, ":"},
    {0x2248, "\\approx "},
    {0x2260, "\\neq "},
    {0x2261, "\\equiv "},
    {0x2264, "\\leq "},
    {0x2265, "\\geq "},
    {0x2A7D, "\\leq "},
    {0x2A7E, "\\geq "},
    {0x2282, "\\subset "},
    {0x2286, "\\subseteq "},
    {0x22C5, "\\cdot "},
    {0x2308, "\\lceil "},
    {0x2309, "\\rceil "},
    {0x230A, "\\lfloor "},
    {0x230B, "\\rfloor "},
    {0x2211, "\\sum "},
    {0x220F, "\\prod "},
    {0x27E8, "\\langle "},
    {0x27E9, "\\rangle "},
    {0x3001, ","},
    {0x3002, "."},
};

static int64_t decode(const unsigned char *p, int64_t left, uint32_t *code)
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

static const char *folded(uint32_t c, char small[16])
{
    if (c == 0x200B || c == 0x200C || c == 0x200D || c == 0x2060 || c == 0xFEFF || c == 0xAD || c == 0x200E || c == 0x200F)
        return "";
    const char ascii = c >= 0xFF01 && c <= 0xFF5E     ? (char)(c - 0xFEE0)
                       : c >= 0x1D7CE && c <= 0x1D7FF ? (char)('0' + (c - 0x1D7CE) % 10)
                                                      : 0;
    if (ascii) {
        small[0] = ascii, small[1] = 0;
        return small;
    }
    if (c >= 0x2070 && c <= 0x2089) { /* runs of these are joined by the caller */
        memcpy(small, c < 0x2080 ? "^{?}" : "_{?}", 5);
        small[2] = (char)('0' + (c & 0xF));
        return (c & 0xF) <= 9 ? small : NULL;
    }
    for (size_t i = 0; i < sizeof FOLD / sizeof *FOLD; i++)
        if (FOLD[i].code == c) return FOLD[i].tex;
    return NULL;
}

int64_t fold_tex(struct math *m, tare_text t, char *out, int64_t capacity)
{
    (void)m;
    int64_t n = 0;
    for (int64_t i = 0; i < t.size;) {
        const unsigned char c = (unsigned char)t.data[i];
        char small[16];
        uint32_t code = 0;
        int64_t used = c < 0x80 ? 0 : decode((const unsigned char *)t.data + i, t.size - i, &code);
        const char *s = used ? folded(code, small) : NULL;
        if (!s) { /* ASCII, or a character without a meaning here: kept, and refused by the lexer */
            if (!used) used = 1;
            if (n + used > capacity) return -1;
            memcpy(out + n, t.data + i, (size_t)used);
            n += used;
        } else {
            const int64_t size = (int64_t)strlen(s);
            if (n + size > capacity) return -1;
            /* x^{1}^{2} from two raised digits is x^{12} */
            const bool join = size == 4 && (s[0] == '^' || s[0] == '_') && n > 3 && out[n - 1] == '}' &&
                              text_is_digit(out[n - 2]) && i > 1 && (unsigned char)t.data[i - 1] >= 0x80;
            if (join)
                n--, memcpy(out + n, s + 2, 2), n += 2;
            else
                memcpy(out + n, s, (size_t)size), n += size;
        }
        i += used;
    }
    return n;
}

/* ---------------------------------------------------------------- text for comparing what is not mathematics, or could not be read */

static bool listed(const char *const *list, const char *s, int64_t n)
{
    for (; *list; list++)
        if ((int64_t)strlen(*list) == n && !memcmp(*list, s, (size_t)n)) return true;
    return false;
}

static const char *const DROPPED[] = {"left", "right",        "big",       "Big",    "bigg", "Bigg",  "bigl",     "bigr", "Bigl",
                                      "Bigr", "displaystyle", "textstyle", "limits", "quad", "qquad", "nolimits", NULL};
static const char *const WRAPPERS[] = {"text",       "textbf", "textit", "textrm",       "mbox",  "mathrm",
                                       "mathbf",     "mathit", "mathsf", "operatorname", "boxed", "fbox",
                                       "boldsymbol", "bm",     "hbox",   "emph",         NULL};

int64_t squash(const char *s, int64_t n, char *out, bool fold_case)
{
    enum { DEPTH = 64 };
    bool drop[DEPTH] = {false}; /* a } without its { goes by the group before it, or is kept */
    int depth = 0;
    bool drop_next = false;
    int64_t size = 0;
    for (int64_t i = 0; i < n;) {
        const char c = s[i];
        if (text_is_space(c) || c == '$' || c == '~') {
            for (i++; i < n && text_is_space(s[i]);) i++;
            if (size && i < n && text_is_digit(out[size - 1]) && text_is_digit(s[i])) out[size++] = ' '; /* 1 2 is not 12 */
        } else if (c == '\\') {
            int64_t k = i + 1;
            while (k < n && text_is_letter(s[k])) k++;
            const char *name = s + i + 1;
            int64_t len = k - i - 1;
            if (!len) { /* \, \! \; \: \{ ... */
                const char d = k < n ? s[k] : 0;
                if (d && !strchr(",!;: $", d)) out[size++] = '\\', out[size++] = d;
                i = k + 1;
                continue;
            }
            i = k;
            if (listed(DROPPED, name, len)) continue;
            if (listed(WRAPPERS, name, len)) {
                drop_next = true;
                continue;
            }
            if (len == 5 && (!memcmp(name, "dfrac", 5) || !memcmp(name, "tfrac", 5))) name++, len--;
            if (len == 3 && (!memcmp(name, "leq", 3) || !memcmp(name, "geq", 3) || !memcmp(name, "neq", 3))) len--;
            out[size++] = '\\';
            for (int64_t q = 0; q < len; q++) out[size++] = name[q];
        } else if (c == '{') {
            const bool single = i + 2 < n && s[i + 2] == '}' && s[i + 1] != '\\' && s[i + 1] != '{';
            if (depth < DEPTH) drop[depth] = drop_next || single;
            if (depth >= DEPTH || !drop[depth]) out[size++] = c;
            depth++;
            drop_next = false;
            i++;
        } else if (c == '}') {
            if (depth > 0) depth--;
            if (depth >= DEPTH || !drop[depth]) out[size++] = c;
            i++;
        } else {
            out[size++] = fold_case ? text_lower(c) : c;
            drop_next = false;
            i++;
        }
    }
    while (size && (out[size - 1] == '.' || out[size - 1] == ',')) size--;
    return size;
}
