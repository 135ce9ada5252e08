/* Write the charts and tables of a report as files for a paper. Each chart is cut out of the page
 * and completed with parts of the page's style sheet: literal colours (programs that draw SVG do
 * not know CSS variables), a white background, its title, and a key of its lines. */
#include "base/fs.h"
#include "lab/report/page.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD = 26, ROW = 17, MARGIN = 8, KEYS = 32, NAME = 80 };

/* The colours of the page's light scheme. */
static const char *const COLOURS[SVG_COLOURS] = {"#2b6cb0", "#c8581a", "#23804f", "#a8327a",
                                                 "#6a4fb8", "#8a6d0b", "#0f8294", "#6b7280"};
static const char STYLE[] =
    "text{font:12px sans-serif;fill:#5d6673}text.y{text-anchor:end}text.x{text-anchor:middle}text.title{font-weight:600;fill:#1d2127}text.key{fill:#1d2127}.grid{stroke:#e3e5e8;fill:none}.axis{stroke:#5d6673;fill:none}.line{fill:none;stroke-width:1.8;stroke-linejoin:round}.line.faint{stroke-width:1;opacity:.4}.d1{stroke-dasharray:6 3}.d2{stroke-dasharray:2 3}.band{opacity:.15}.area{opacity:.75}.dot.faint{opacity:.45}";

struct text { /* a part of the page */
    const char *at;
    int64_t n;
};

struct figure {
    struct text title, body; /* body: inside of <svg> */
    struct key {
        struct text label;
        int colour, dashes;
        bool area;
    } keys[KEYS];
    int n_keys;
};

/* Find the text between `open` and `close` after *at, and advance *at behind it. */
static bool text_between(const char **at, const char *open, const char *close, struct text *out)
{
    const char *from = strstr(*at, open), *to = from ? strstr(from + strlen(open), close) : NULL;
    if (!to) return false;
    *out = (struct text){from + strlen(open), to - from - (int64_t)strlen(open)};
    *at = to + strlen(close);
    return true;
}

/* Collect the named lines and areas in their order. */
static void find_keys(struct figure *f)
{
    const char *const end = f->body.at + f->body.n;
    for (const char *p = f->body.at; f->n_keys < KEYS && (p = strstr(p, "<path class=\"")) && p < end; p++) {
        struct key k = {0};
        const char *at = p;
        const char *close = strstr(p, "</path>"), *next = strstr(p + 1, "<path");
        k.area = sscanf(p, "<path class=\"area c%d", &k.colour) == 1;
        if (!k.area && sscanf(p, "<path class=\"line c%d d%d", &k.colour, &k.dashes) != 2) continue;
        const char *named = strstr(p, k.area ? "<title>" : "data-n=\"");
        if (!named || named > end || (next && named > next) || (k.area && !close)) continue;
        if (text_between(&at, k.area ? "<title>" : "data-n=\"", k.area ? "</title>" : "\"", &k.label)) f->keys[f->n_keys++] = k;
    }
}

static bool next_figure(const char **at, struct figure *f)
{
    struct text inside;
    *f = (struct figure){0};
    while (text_between(at, "<figure", "</figure>", &inside)) {
        const char *p = inside.at, *const end = inside.at + inside.n;
        const char *svg = strstr(p, "<svg ");
        if (!svg || svg > end || !text_between(&p, "<figcaption>", "</figcaption>", &f->title)) continue;
        p = strchr(svg, '>') + 1;
        f->body = (struct text){p, strstr(p, "</svg>") - p};
        const char *note = strstr(f->title.at, " <small>");
        if (note && note < f->title.at + f->title.n) f->title.n = note - f->title.at;
        find_keys(f);
        return true;
    }
    return false;
}

static tare_status print_figure(const struct figure *f, struct str *out, struct err *e)
{
    const int rows = f->n_keys > 1 ? f->n_keys : 0, height = HEAD + SVG_HEIGHT + MARGIN + ROW * rows;
    TRY(str_addf(out, e, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 %d %d %d\" width=\"%d\" height=\"%d\">\n<style>%s",
                 -HEAD, SVG_WIDTH, height, SVG_WIDTH, height, STYLE));
    for (int c = 0; c < SVG_COLOURS; c++)
        TRY(str_addf(out, e, ".line.c%d{stroke:%s}.band.c%d,.area.c%d,.dot.c%d{fill:%s}", c, COLOURS[c], c, c, c, COLOURS[c]));
    TRY(str_addf(
        out, e,
        "</style>\n<rect y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#fff\"/><text class=\"title\" x=\"%d\" y=\"%d\">%.*s</text>\n%.*s\n",
        -HEAD, SVG_WIDTH, height, MARGIN, -MARGIN, (int)f->title.n, f->title.at, (int)f->body.n, f->body.at));
    for (int i = 0; i < rows; i++) {
        const struct key *k = &f->keys[i];
        const int y = SVG_HEIGHT + MARGIN + ROW * i;
        if (k->area)
            TRY(str_addf(out, e, "<rect class=\"area c%d\" x=\"%d\" y=\"%d\" width=\"22\" height=\"8\"/>", k->colour, MARGIN, y));
        else
            TRY(str_addf(out, e, "<path class=\"line c%d d%d\" d=\"M%d %dh22\"/>", k->colour, k->dashes, MARGIN, y + 4));
        TRY(str_addf(out, e, "<text class=\"key\" x=\"%d\" y=\"%d\">%.*s</text>\n", MARGIN + 28, y + 8, (int)k->label.n,
                     k->label.at));
    }
    return str_add(out, "</svg>\n", -1, e);
}

/* Make a file name of ASCII letters and digits: "Training reward" -> training-reward, "a group's"
 * -> a-groups. */
static void chart_file_name(const char *text, int64_t n, char out[NAME])
{
    static const struct {
        const char *sign, *as;
    } SIGNS[] = {{"\xCF\x83", "sigma"}, {"\xE2\x82\x81", "1"}};
    int k = 0;
    for (int64_t i = 0; i < n && k < NAME - 8; i++) {
        for (int s = 0; s < 2; s++)
            if (!strncmp(text + i, SIGNS[s].sign, strlen(SIGNS[s].sign))) k += snprintf(out + k, 8, "%s", SIGNS[s].as);
        if (isalnum((unsigned char)text[i]))
            out[k++] = (char)tolower((unsigned char)text[i]);
        else if (k && text[i] != '\'' && out[k - 1] != '-')
            out[k++] = '-';
    }
    while (k && out[k - 1] == '-') k--;
    snprintf(out + k, (size_t)(NAME - k), "%s", k ? "" : "figure");
}

/* Files that must appear in a folder together. They are written to a temporary folder inside it and
 * moved when all are complete. */
struct set {
    const char *dir;
    char part[FS_PATH];
    struct str names;
};

static tare_status open_set(struct set *s, const char *dir, struct err *e)
{
    s->dir = dir;
    TRY(fs_mkdirs(dir, e));
    TRY(fs_join(s->part, dir, ".report-XXXXXX", e));
    if (mkdtemp(s->part)) return TARE_OK;
    s->part[0] = 0;
    FAIL(e, TARE_E_IO, "cannot create files in %s: %s", dir, strerror(errno));
}

static void free_set(struct set *s)
{
    if (s->part[0]) fs_remove_tree(s->part, NULL);
    str_free(&s->names);
}

static int is_file(const struct dirent *d)
{
    return d->d_name[0] != '.'; /* chart_file_name never begins with a dot */
}

static tare_status publish_set(struct set *s, struct err *e)
{
    OWNED(fs_list_free) struct fs_list l = {0};
    char from[FS_PATH], to[FS_PATH];
    TRY(fs_list(s->part, is_file, &l, e));
    for (int i = 0; i < l.n; i++) {
        TRY(fs_join(from, s->part, l.entry[i]->d_name, e));
        TRY(fs_join(to, s->dir, l.entry[i]->d_name, e));
        if (rename(from, to)) FAIL(e, TARE_E_IO, "%s: %s", to, strerror(errno));
    }
    return fs_sync_dir(s->dir, e);
}

/* Add NAME.EXT, or NAME-2.EXT, NAME-3.EXT, ... if the set has a file of that name. */
static tare_status add_to_set(struct set *s, const char *name, const char *extension, const struct str *text, struct err *e)
{
    char path[FS_PATH], file[NAME + 32], entry[NAME + 40];
    for (int k = 1;; k++) {
        if (k == 1)
            snprintf(file, sizeof file, "%s.%s", name, extension);
        else
            snprintf(file, sizeof file, "%s-%d.%s", name, k, extension);
        snprintf(entry, sizeof entry, "/%s/", file);
        if (!s->names.size || !strstr(s->names.data, entry)) break;
    }
    TRY(str_add(&s->names, entry, -1, e));
    TRY(fs_join(path, s->part, file, e));
    return fs_write_atomic(path, text->data, text->size, e);
}

tare_status report_figures(const char *page, const char *dir, struct err *e)
{
    OWNED(str_free) struct str one = {0};
    OWNED(free_set) struct set set = {0};
    struct figure f;
    TRY(open_set(&set, dir, e));
    for (const char *at = page; next_figure(&at, &f);) {
        char name[NAME];
        str_clear(&one);
        chart_file_name(f.title.at, f.title.n, name);
        TRY(print_figure(&f, &one, e));
        TRY(add_to_set(&set, name, "svg", &one, e));
    }
    return publish_set(&set, e);
}

tare_status report_charts(const char *const *paths, int64_t n, const char *dir, struct err *e)
{
    OWNED(str_free) struct str page = {0};
    TRY(report_html(paths, n, &page, e));
    return report_figures(page.data, dir, e);
}

tare_status report_latex(const char *const *paths, int64_t n, const char *dir, struct err *e)
{
    OWNED(page_close_at) struct page *p = NULL;
    OWNED(str_free) struct str one = {0};
    OWNED(free_set) struct set set = {0};
    TRY(page_open(paths, n, &p, e));
    if (!p->n_plans) FAIL(e, TARE_E_INVALID, "%s: --latex needs a sweep; name the folder of one", paths[0]);
    TRY(open_set(&set, dir, e));
    for (int64_t i = 0; i < p->n_plans; i++) {
        char name[NAME];
        str_clear(&one);
        chart_file_name(p->plans[i].name, (int64_t)strlen(p->plans[i].name), name);
        TRY(sweep_table_latex(&p->tables[i], &one, e));
        TRY(add_to_set(&set, name, "tex", &one, e));
    }
    return publish_set(&set, e);
}
