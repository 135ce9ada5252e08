#include "config/ini_file.h"

#include "base/arena.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/utf8.h"

#include <ini.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LINE_MOST = 16384, SECTION_MOST = 48, KEY_MOST = 128 };

struct seen {
    struct seen *next;
    int64_t line;
    const char *name; /* section.key */
};

struct ini_reader {
    const char *path, *repeatable, *cursor, *end;
    int64_t line;
    ini_entry entry;
    void *ctx;
    struct faults *faults;
    struct err *e;
    tare_status status;
    struct arena arena;
    struct seen *seen;
};

#define REFUSE(R, ...) ((R)->status = refuse_line((R), __VA_ARGS__))

ERR_PRINTF(2, 3) static tare_status refuse_line(struct ini_reader *r, const char *format, ...)
{
    char text[1500];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return err_set(r->e, TARE_E_CONFIG, __FILE__, __LINE__, "%s:%lld: %s", r->path, (long long)r->line, text);
}

/* Checks a section's line in full, because libinih would cut a long name and ignore text after the
 * bracket. */
static tare_status check_section(struct ini_reader *r, const char *text, int64_t n)
{
    const char *close = memchr(text, ']', (size_t)n);
    if (!close) return refuse_line(r, "a section needs a closing bracket: [name]");
    if (close - text - 1 > SECTION_MOST) return refuse_line(r, "a section's name has at most %d characters", SECTION_MOST);
    if (close == text + 1) return refuse_line(r, "the name of the section is missing");
    for (const char *p = close + 1; p < text + n; p++) {
        if (*p == ';' || *p == '#') break;
        if (*p != ' ' && *p != '\t') return refuse_line(r, "text after the section's bracket; start a new line");
    }
    return TARE_OK;
}

static tare_status check_text(struct ini_reader *r, const char *text, int64_t n, int64_t limit)
{
    if (memchr(text, 0, (size_t)n)) return refuse_line(r, "a NUL byte is not allowed; is this a text file?");
    if (str_utf8_error(text, n)) return refuse_line(r, "byte %lld is not valid UTF-8", (long long)str_utf8_error(text, n));
    if (n > limit) return refuse_line(r, "a line has at most %lld bytes, but this one has %lld", (long long)limit, (long long)n);
    if (!n || *text == ';' || *text == '#') return TARE_OK;
    if (*text == '[') return check_section(r, text, n);
    const char *equals = memchr(text, '=', (size_t)n), *colon = memchr(text, ':', (size_t)n);
    if (!equals || (colon && colon < equals))
        return refuse_line(r, "expected key = value, [section], or a comment that starts with # or ;");
    if (equals == text) return refuse_line(r, "the key before the value is missing");
    return TARE_OK;
}

/* Returns one line per call, like fgets. */
static char *next_line(char *out, int size, void *ctx)
{
    struct ini_reader *r = ctx;
    if (r->status || r->cursor >= r->end) return NULL;
    const char *newline = memchr(r->cursor, '\n', (size_t)(r->end - r->cursor));
    const char *begin = r->cursor, *end = newline ? newline : r->end;
    r->cursor = newline ? newline + 1 : r->end;
    r->line++;
    if (end > begin && end[-1] == '\r') end--;
    while (begin < end && (*begin == ' ' || *begin == '\t')) begin++;
    const tare_status bad = check_text(r, begin, end - begin, size - 3);
    if ((r->status = err_note_fault(r->faults, bad, r->e))) return NULL;
    if (bad) end = begin;
    memcpy(out, begin, (size_t)(end - begin));
    out[end - begin] = '\n';
    out[end - begin + 1] = 0;
    return out;
}

/* Warns about "1e-5 # mine": only ; starts a comment there, because # is common in prompts. */
static void warn_hash(const struct ini_reader *r, const char *value)
{
    for (const char *p = value; *p; p++)
        if (*p == '#' && (p[1] == ' ' || p[1] == '\t') && (p == value || p[-1] == ' ' || p[-1] == '\t')) {
            log_warn(
                "%s:%lld: '%.60s' is part of the value: a comment after a value starts with ; (put the value in quotes if this is intended)",
                r->path, (long long)r->line, p);
            return;
        }
}

/* Resolves the escape \uXXXX at *from: four hexadecimal digits that name a character other than
 * U+0000 and a surrogate. Leaves *from at its last digit. */
static tare_status resolve_unicode(struct ini_reader *r, char **to, char **from)
{
    static const char HEX[] = "0123456789abcdefABCDEF";
    int32_t c = 0;
    for (int i = 2; i < 6; i++) {
        const char *digit = (*from)[i] ? strchr(HEX, (*from)[i]) : NULL;
        if (!digit) return refuse_line(r, "invalid escape '%.*s' in quotes; \\u takes four hexadecimal digits", i, *from);
        c = 16 * c + (int32_t)(digit - HEX < 16 ? digit - HEX : digit - HEX - 6);
    }
    if (!c || (c >= 0xD800 && c <= 0xDFFF)) return refuse_line(r, "'%.6s' in quotes does not name a character", *from);
    *to += utf8_put(*to, c);
    *from += 5;
    return TARE_OK;
}

/* Resolves quotes and escapes in the value after "=", or removes the comment. Works in place. */
static tare_status unquote_value(struct ini_reader *r, char *value)
{
    if (*value != '"') {
        for (char *p = value; *p; p++) {
            if (*p != ';' || (p > value && p[-1] != ' ' && p[-1] != '\t')) continue;
            while (p > value && (p[-1] == ' ' || p[-1] == '\t')) p--;
            *p = 0;
            break;
        }
        warn_hash(r, value);
        return TARE_OK;
    }
    char *to = value, *from = value + 1;
    for (; *from && *from != '"'; from++) {
        if (*from == '\\' && from[1] == 'u') {
            TRY(resolve_unicode(r, &to, &from));
        } else if (*from == '\\') {
            static const char *const KNOWN = "\"\\nt", *const MEANS = "\"\\\n\t";
            const char *which = from[1] ? strchr(KNOWN, from[1]) : NULL;
            if (!which) return refuse_line(r, "unknown escape '\\%.1s' in quotes; allowed: \\\" \\\\ \\n \\t \\uXXXX", from + 1);
            *to++ = MEANS[which - KNOWN];
            from++;
        } else {
            *to++ = *from;
        }
    }
    if (!*from) return refuse_line(r, "the closing quote is missing");
    for (from++; *from == ' ' || *from == '\t';) from++;
    if (*from && *from != ';') return refuse_line(r, "text after the closing quote; write \\\" for a quote inside");
    *to = 0;
    return TARE_OK;
}

static tare_status remember_key(struct ini_reader *r, const char *section, const char *key)
{
    if (r->repeatable && !*section && !strcmp(key, r->repeatable)) return TARE_OK;
    char name[SECTION_MOST + KEY_MOST + 8];
    snprintf(name, sizeof name, "%s.%s", section, key);
    for (const struct seen *s = r->seen; s; s = s->next)
        if (!strcmp(s->name, name))
            return refuse_line(r, "%s appears twice in this file, first in line %lld; remove one", key, (long long)s->line);
    struct seen *s;
    TRY(arena_new(&r->arena, &s, 1, r->e));
    TRY(arena_strdup(&r->arena, name, -1, (char **)(uintptr_t)&s->name, r->e));
    s->line = r->line;
    s->next = r->seen;
    r->seen = s;
    return TARE_OK;
}

static tare_status pass_entry(struct ini_reader *r, const char *section, const char *key, const char *value)
{
    if (strlen(key) > KEY_MOST) return refuse_line(r, "a key has at most %d characters", KEY_MOST);
    TRY(remember_key(r, section, key));
    char *text, where[FS_PATH];
    TRY(arena_strdup(&r->arena, value, -1, &text, r->e));
    TRY(unquote_value(r, text));
    snprintf(where, sizeof where, "%s:%lld", r->path, (long long)r->line);
    return r->entry(r->ctx, section, key, text, where, r->e);
}

static int on_entry(void *ctx, const char *section, const char *key, const char *value)
{
    struct ini_reader *r = ctx;
    if (!r->status) r->status = err_note_fault(r->faults, pass_entry(r, section, key, value), r->e);
    return !r->status;
}

tare_status ini_read_file(const char *path, const char *repeatable, ini_entry entry, void *ctx, struct faults *faults,
                          struct err *e)
{
    struct str text = {0};
    tare_status status = fs_read_written(path, &text, e);
    if (status) {
        str_free(&text);
        return status == TARE_E_NOT_FOUND ? (e->code = TARE_E_CONFIG) : status;
    }
    struct ini_reader r = {.path = path, .repeatable = repeatable, .entry = entry, .ctx = ctx, .faults = faults, .e = e};
    arena_init(&r.arena, "configuration file");
    r.cursor = text.data;
    r.end = text.data + text.size;
    if (text.size >= 3 && !memcmp(text.data, "\xEF\xBB\xBF", 3)) r.cursor += 3;
    ini_use_stack = false;
    ini_max_line = ini_initial_alloc = LINE_MOST;
    ini_allow_multiline = ini_allow_inline_comments = false;
    ini_stop_on_first_error = true;
    const int bad = ini_parse_stream(next_line, &r, on_entry, &r);
    if (bad < 0 && !r.status) r.status = err_set(e, TARE_E_NOMEM, __FILE__, __LINE__, "%s: out of memory", path);
    if (bad && !r.status) REFUSE(&r, "invalid line; expected key = value");
    arena_free(&r.arena);
    str_free(&text);
    return r.status;
}

/* Returns the control character at p, other than a newline and a tab: U+0001 to U+001F and U+007F
 * to U+009F; 0: another character. */
static int control_at(const char *p)
{
    const unsigned char *c = (const unsigned char *)p;
    if (*c == '\n' || *c == '\t') return 0;
    if (*c == 0xC2 && c[1] >= 0x80 && c[1] <= 0x9F) return c[1];
    return (*c && *c < 0x20) || *c == 0x7F ? *c : 0;
}

static bool has_control(const char *value)
{
    while (*value && !control_at(value)) value++;
    return *value;
}

tare_status ini_quote(struct str *out, const char *value, struct err *e)
{
    static const char BLANKS[] = " \t\r\v\f"; /* characters that libinih strips from both ends */
    const size_t n = strlen(value);
    const bool ends = n && (strchr(BLANKS, value[0]) || strchr(BLANKS, value[n - 1]));
    if (!ends && !strpbrk(value, ";#\"\\\n\t") && !has_control(value)) return str_add(out, value, (int64_t)n, e);
    TRY(str_add(out, "\"", 1, e));
    for (const char *p = value; *p; p++) {
        if (*p == '\n') {
            TRY(str_add(out, "\\n", 2, e));
        } else if (*p == '\t') {
            TRY(str_add(out, "\\t", 2, e));
        } else if (control_at(p)) {
            TRY(str_addf(out, e, "\\u%04x", (unsigned)control_at(p)));
            p += control_at(p) > 0x7F;
        } else {
            if (*p == '"' || *p == '\\') TRY(str_add(out, "\\", 1, e));
            TRY(str_add(out, p, 1, e));
        }
    }
    return str_add(out, "\"", 1, e);
}
