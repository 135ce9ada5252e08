/* A figure of export.c as a PDF of one page: the few elements and classes that svg.c and export.c write become drawing operators, text in the fonts that
 * every reader has (Helvetica, and Symbol for Greek). A pixel is 3/4 of a point. */
#include "lab/report/pdf.h"

#include "base/utf8.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { OBJECTS = 8, NAME = 48 };

/* Of Helvetica's characters 32 to 126, in thousandths of the size. */
static const short WIDTHS[] = {278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333,  278, 278, 556, 556, 556,
                               556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667,
                               611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667,  611, 722, 667, 944, 667,
                               667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278,  556, 556, 222, 222, 500,
                               222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500,  500, 334, 260, 334, 584};

/* Of the Greek letters from U+0391 and from U+03B1 on, the place in Symbol. */
static const char CAPITALS[] = "ABGDEZHQIKLMNXOPR?STUFCYW", SMALL[] = "abgdezhqiklmnxoprVstufcyw";

/* What the style sheet of a figure says. */
static const struct look {
    const char *kind;
    bool fill, key; /* key: in the colour of its line */
    double width, opacity;
    const char *colour, *state; /* state: the opacity as a resource of the page */
} LOOKS[] = {{"grid", false, false, 1, 1, "#e3e5e8", "opaque"},  {"axis", false, false, 1, 1, "#5d6673", "opaque"},
             {"line", false, true, 1.8, 1, "#000000", "opaque"}, {"faint", false, true, 1, .4, "#000000", "faint"},
             {"band", true, true, 0, .15, "#000000", "band"},    {"area", true, true, 0, .75, "#000000", "area"},
             {"dot", true, true, 0, 1, "#000000", "opaque"},     {"pale", true, true, 0, .45, "#000000", "pale"},
             {"ground", true, false, 0, 1, "#ffffff", "opaque"}};
enum { LOOKS_N = sizeof LOOKS / sizeof *LOOKS };

struct drawing {
    const char *const *colours;
    struct str *out;
    struct err *e;
};

struct element {
    const char *at, *end; /* from its name to the > */
    char kind[NAME];      /* of its class */
    int colour, dashes;
    bool faint;
};

/* ---------------------------------------------------------------- what an element says */

/* The value of an attribute; NULL: it has none. */
static const char *attribute(const struct element *x, const char *name)
{
    char wanted[NAME];
    snprintf(wanted, sizeof wanted, " %s=\"", name);
    const char *found = strstr(x->at, wanted);
    return found && found < x->end ? found + strlen(wanted) : NULL;
}

static double number(const struct element *x, const char *name)
{
    const char *text = attribute(x, name);
    return text ? strtod(text, NULL) : 0;
}

/* class="line c0 d1 faint" */
static void read_class(struct element *x)
{
    const char *at = attribute(x, "class");
    x->kind[0] = 0;
    x->colour = x->dashes = 0;
    x->faint = false;
    for (int k = 0; at && *at && *at != '"'; k++) {
        const size_t n = strcspn(at, " \"");
        if (!k)
            snprintf(x->kind, sizeof x->kind, "%.*s", (int)n, at);
        else if (*at == 'c')
            x->colour = atoi(at + 1) % SVG_COLOURS;
        else if (*at == 'd')
            x->dashes = atoi(at + 1);
        else
            x->faint = true;
        at += n + (at[n] == ' ');
    }
}

static const struct look *look_of(const struct element *x)
{
    const char *kind = !*x->kind ? "ground" : x->faint && !strcmp(x->kind, "line") ? "faint" : x->faint ? "pale" : x->kind;
    for (int i = 0; i < LOOKS_N; i++)
        if (!strcmp(LOOKS[i].kind, kind)) return &LOOKS[i];
    return &LOOKS[1];
}

/* ---------------------------------------------------------------- lines and areas */

static tare_status set_colour(const struct drawing *d, const char *hex, bool fill)
{
    const long rgb = strtol(hex + 1, NULL, 16);
    return str_addf(d->out, d->e, "%.3f %.3f %.3f %s\n", (double)(rgb >> 16 & 255) / 255, (double)(rgb >> 8 & 255) / 255,
                    (double)(rgb & 255) / 255, fill ? "rg" : "RG");
}

static tare_status set_look(const struct drawing *d, const struct element *x, const struct look *l)
{
    const bool dashed = attribute(x, "stroke-dasharray") != NULL;
    TRY(str_addf(d->out, d->e, "/%s gs ", l->state));
    TRY(set_colour(d, l->key ? d->colours[x->colour] : l->colour, l->fill));
    if (l->fill) return TARE_OK;
    return str_addf(d->out, d->e, "%g w %s d\n", l->width,
                    dashed              ? "[4 4] 0"
                    : x->dashes == 1    ? "[6 3] 0"
                    : x->dashes % 3 > 1 ? "[2 3] 0"
                                        : "[] 0");
}

/* M, L and pairs without a letter: to a point; H, h: along the row; Z: back to the start. */
static tare_status add_path(const struct drawing *d, const struct element *x)
{
    const char *at = attribute(x, "d");
    double px = 0, py = 0;
    char letter = 'M';
    while (at && *at != '"' && *at) {
        char *end = NULL;
        if (strchr("MLHhZ", *at)) {
            letter = *at++;
            if (letter == 'Z') TRY(str_add(d->out, "h\n", -1, d->e));
            continue;
        }
        const double first = strtod(at, &end);
        if (end == at) {
            at++;
            continue;
        }
        at = end;
        if (letter == 'H' || letter == 'h') {
            px = letter == 'h' ? px + first : first;
        } else {
            px = first;
            py = strtod(at, &end);
            at = end;
        }
        TRY(str_addf(d->out, d->e, "%.2f %.2f %c\n", px, py, letter == 'M' ? 'm' : 'l'));
        if (letter == 'M') letter = 'L';
    }
    return TARE_OK;
}

/* Four curves, whose handles are (4/3) tan(pi/8) of the radius long. */
static tare_status add_circle(const struct drawing *d, const struct element *x)
{
    const double cx = number(x, "cx"), cy = number(x, "cy"), r = number(x, "r"), h = 0.5522847 * r;
    TRY(str_addf(d->out, d->e, "%.2f %.2f m\n%.2f %.2f %.2f %.2f %.2f %.2f c\n", cx + r, cy, cx + r, cy + h, cx + h, cy + r, cx,
                 cy + r));
    TRY(str_addf(d->out, d->e, "%.2f %.2f %.2f %.2f %.2f %.2f c\n", cx - h, cy + r, cx - r, cy + h, cx - r, cy));
    TRY(str_addf(d->out, d->e, "%.2f %.2f %.2f %.2f %.2f %.2f c\n", cx - r, cy - h, cx - h, cy - r, cx, cy - r));
    return str_addf(d->out, d->e, "%.2f %.2f %.2f %.2f %.2f %.2f c\n", cx + h, cy - r, cx + r, cy - h, cx + r, cy);
}

static tare_status add_shape(const struct drawing *d, const struct element *x, const char *name)
{
    const struct look *l = look_of(x);
    TRY(set_look(d, x, l));
    if (!strcmp(name, "path"))
        TRY(add_path(d, x));
    else if (!strcmp(name, "circle"))
        TRY(add_circle(d, x));
    else
        TRY(str_addf(d->out, d->e, "%.2f %.2f %.2f %.2f re\n", number(x, "x"), number(x, "y"), number(x, "width"),
                     number(x, "height")));
    return str_add(d->out, l->fill ? "f\n" : "S\n", -1, d->e);
}

/* ---------------------------------------------------------------- text */

/* The next character of SVG's text; *at moves on. */
static int32_t next_character(const char **at, const char *end)
{
    static const struct {
        const char *name;
        char is;
    } NAMES[] = {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}};
    for (int i = 0; i < 4; i++) {
        const size_t n = strlen(NAMES[i].name);
        if ((size_t)(end - *at) >= n && !strncmp(*at, NAMES[i].name, n)) {
            *at += n;
            return NAMES[i].is;
        }
    }
    const unsigned char *p = (const unsigned char *)*at;
    const int32_t c = utf8_next(&p);
    *at = (const char *)p;
    return c;
}

static double width_of(const char *at, const char *end, double size)
{
    double sum = 0;
    while (at < end) {
        const int32_t c = next_character(&at, end);
        sum += c >= 32 && c < 127 ? WIDTHS[c - 32] : 556;
    }
    return sum * size / 1000;
}

enum style { UPRIGHT, GREEK, LOWERED };

/* Latin letters by their code in WinAnsi, Greek ones in Symbol, lowered digits small; what these fonts lack becomes a question mark. */
static int code_of(int32_t c, enum style *style)
{
    *style = UPRIGHT;
    if ((c >= 0x391 && c <= 0x3A9) || (c >= 0x3B1 && c <= 0x3C9)) {
        *style = GREEK;
        return c < 0x3B1 ? CAPITALS[c - 0x391] : SMALL[c - 0x3B1];
    }
    if (c >= 0x2080 && c <= 0x2089) {
        *style = LOWERED;
        return '0' + (c - 0x2080);
    }
    return (c >= 32 && c < 127) || (c >= 0xA0 && c < 0x100) ? c : '?';
}

static tare_status add_characters(const struct drawing *d, const char *font, const char *at, const char *end)
{
    enum style now = UPRIGHT;
    TRY(str_addf(d->out, d->e, "/%s 12 Tf (", font));
    while (at < end) {
        enum style style;
        const int code = code_of(next_character(&at, end), &style);
        if (style != now)
            TRY(str_addf(d->out, d->e, ") Tj /%s %d Tf %d Ts (", style == GREEK ? "Greek" : font, style == LOWERED ? 8 : 12,
                         style == LOWERED ? -3 : 0));
        now = style;
        if (code < 127 && !strchr("()\\", code))
            TRY(str_addf(d->out, d->e, "%c", code));
        else
            TRY(str_addf(d->out, d->e, "\\%03o", (unsigned)code));
    }
    return str_add(d->out, ") Tj 0 Ts\n", -1, d->e);
}

static tare_status add_text(const struct drawing *d, const struct element *x)
{
    const char *from = x->end + 1, *to = strstr(from, "</text>");
    const bool title = !strcmp(x->kind, "title"), dark = title || !strcmp(x->kind, "key");
    const double width = to ? width_of(from, to, 12) : 0;
    const double left = number(x, "x") - (!strcmp(x->kind, "y") ? width : !strcmp(x->kind, "x") ? width / 2 : 0);
    if (!to) return TARE_OK;
    TRY(str_add(d->out, "/opaque gs ", -1, d->e));
    TRY(set_colour(d, dark ? "#1d2127" : "#5d6673", true));
    TRY(str_addf(d->out, d->e, "BT 1 0 0 -1 %.2f %.2f Tm\n", left, number(x, "y")));
    TRY(add_characters(d, title ? "Bold" : "Text", from, to));
    return str_add(d->out, "ET\n", -1, d->e);
}

/* ---------------------------------------------------------------- the file */

static tare_status draw(const struct drawing *d, const char *svg)
{
    static const char *const NAMES[] = {"path", "circle", "rect", "text"};
    const char *at = strstr(svg, "</style>");
    for (at = at ? at : svg; (at = strchr(at, '<')); at++) {
        for (int k = 0; k < 4; k++) {
            const size_t n = strlen(NAMES[k]);
            if (strncmp(at + 1, NAMES[k], n) || at[1 + n] != ' ') continue;
            struct element x = {.at = at, .end = strchr(at, '>')};
            if (!x.end) return TARE_OK;
            read_class(&x);
            TRY(k == 3 ? add_text(d, &x) : add_shape(d, &x, NAMES[k]));
        }
    }
    return TARE_OK;
}

struct file {
    struct str *out;
    struct err *e;
    int64_t at[OBJECTS]; /* where an object begins */
    int n;
};

static tare_status object(struct file *f, const char *body)
{
    f->at[f->n++] = f->out->size;
    return str_addf(f->out, f->e, "%d 0 obj\n%s\nendobj\n", f->n, body);
}

static tare_status add_font(struct file *f, const char *name, bool latin)
{
    char body[160];
    snprintf(body, sizeof body, "<< /Type /Font /Subtype /Type1 /BaseFont /%s%s >>", name,
             latin ? " /Encoding /WinAnsiEncoding" : "");
    return object(f, body);
}

static tare_status add_page(struct file *f, double width, double height)
{
    char body[640];
    int n = snprintf(
        body, sizeof body,
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 %g %g] /Contents 4 0 R\n/Resources << /Font << /Text 5 0 R /Bold 6 0 R /Greek 7 0 R >>\n/ExtGState <<",
        0.75 * width, 0.75 * height);
    for (int i = 0; i < LOOKS_N; i++)
        if (!i || LOOKS[i].opacity < 1)
            n += snprintf(body + n, sizeof body - (size_t)n, " /%s << /CA %g /ca %g >>", LOOKS[i].state, LOOKS[i].opacity,
                          LOOKS[i].opacity);
    snprintf(body + n, sizeof body - (size_t)n, " >> >> >>");
    return object(f, body);
}

static tare_status add_contents(struct file *f, const struct str *drawn)
{
    f->at[f->n++] = f->out->size;
    TRY(str_addf(f->out, f->e, "%d 0 obj\n<< /Length %lld >>\nstream\n", f->n, (long long)drawn->size));
    TRY(str_add(f->out, drawn->data, drawn->size, f->e));
    return str_add(f->out, "\nendstream\nendobj\n", -1, f->e);
}

/* Of each object the byte at which it begins: that is how a reader finds it. */
static tare_status add_index(struct file *f)
{
    const int64_t at = f->out->size;
    TRY(str_addf(f->out, f->e, "xref\n0 %d\n0000000000 65535 f \n", f->n + 1));
    for (int i = 0; i < f->n; i++) TRY(str_addf(f->out, f->e, "%010lld 00000 n \n", (long long)f->at[i]));
    return str_addf(f->out, f->e, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%lld\n%%%%EOF\n", f->n + 1, (long long)at);
}

tare_status pdf_print(const char *svg, const char *const *colours, struct str *out, struct err *e)
{
    OWNED(str_free) struct str drawn = {0};
    struct file f = {.out = out, .e = e};
    const struct drawing d = {colours, &drawn, e};
    double top = 0, width = SVG_WIDTH, height = SVG_HEIGHT;
    const char *box = strstr(svg, "viewBox=\"0 ");
    if (!box || sscanf(box, "viewBox=\"0 %lf %lf %lf\"", &top, &width, &height) != 3)
        FAIL(e, TARE_E_INVALID, "a figure has no view box that begins at 0");
    TRY(str_addf(&drawn, e, "0.75 0 0 -0.75 0 %g cm 1 j\n", 0.75 * (height + top)));
    TRY(draw(&d, svg));
    TRY(str_add(out, "%PDF-1.4\n%\xE2\xE3\xCF\xD3\n", -1, e)); /* the second line: this file is not text */
    TRY(object(&f, "<< /Type /Catalog /Pages 2 0 R >>"));
    TRY(object(&f, "<< /Type /Pages /Kids [3 0 R] /Count 1 >>"));
    TRY(add_page(&f, width, height));
    TRY(add_contents(&f, &drawn));
    TRY(add_font(&f, "Helvetica", true));
    TRY(add_font(&f, "Helvetica-Bold", true));
    TRY(add_font(&f, "Symbol", false));
    return add_index(&f);
}
