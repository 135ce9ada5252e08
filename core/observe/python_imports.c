#include "observe/python_imports.h"

#include "base/fs.h"

#include <ctype.h>
#include <string.h>
#include <sys/stat.h>

/* A file that is scanned: the text from `at` to `end` is still to be read. */
struct scan {
    const char *folder, *file; /* file: relative to the folder */
    json_t *names;
    const char *at, *end;
};

/* Appends a name unless it is in the list or is not a file. */
static tare_status add_file(const struct scan *s, const char *name, bool *there, struct err *e)
{
    char path[FS_PATH];
    struct stat info;
    json_t *one;
    size_t i;
    *there = !fs_join(path, s->folder, name, NULL) && !stat(path, &info) && S_ISREG(info.st_mode);
    if (!*there) return TARE_OK;
    json_array_foreach(s->names, i, one)
    {
        if (!strcmp(json_string_value(one), name)) return TARE_OK;
    }
    /* JSON cannot hold such names */
    if (str_utf8_error(name, (int64_t)strlen(name))) return TARE_OK;
    if (json_array_append_new(s->names, json_string(name))) FAIL(e, TARE_E_NOMEM, "%s: out of memory for its imports", path);
    return TARE_OK;
}

/* Writes the folder that a module name is relative to, with a slash at its end: "" for an absolute
 * import; for one with `dots` dots, the folder of the importing file or one above it. Returns false
 * if that is outside. */
static bool base_folder(const struct scan *s, int64_t dots, char out[FS_PATH])
{
    out[0] = 0;
    if (!dots) return true;
    snprintf(out, FS_PATH, "%s", s->file);
    for (int64_t i = 0; i < dots; i++) {
        size_t n = strlen(out);
        if (i && !n) return false;
        n -= n && out[n - 1] == '/';
        while (n && out[n - 1] != '/') n--;
        out[n] = 0;
    }
    return true;
}

/* Adds the files of a module: of "a.b" a/__init__.py or a.py, then a/b/__init__.py or a/b.py. */
static tare_status add_module(const struct scan *s, int64_t dots, const char *module, struct err *e)
{
    char path[FS_PATH], name[FS_PATH];
    bool there;
    if (!base_folder(s, dots, path)) return TARE_OK;
    for (size_t n = strlen(path); *module; n = strlen(path)) {
        const size_t size = strcspn(module, ".");
        if (n + size + sizeof "/__init__.py" > FS_PATH) return TARE_OK;
        snprintf(path + n, FS_PATH - n, "%.*s", (int)size, module);
        module += size + (module[size] == '.');
        snprintf(name, sizeof name, "%.4000s/__init__.py", path);
        TRY(add_file(s, name, &there, e));
        snprintf(name, sizeof name, "%.4000s.py", path);
        if (!there) TRY(add_file(s, name, &there, e));
        strcat(path, "/");
    }
    return TARE_OK;
}

/* ---------------------------------------------------------------- statements */

static bool is_letter(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

/* lines: also skip line breaks and comments, as inside parentheses. */
static void skip_blanks(struct scan *s, bool lines)
{
    for (; s->at < s->end; s->at++) {
        if (*s->at == '\\' && s->at + 1 < s->end && (s->at[1] == '\n' || s->at[1] == '\r'))
            s->at++;
        else if (lines && *s->at == '#')
            while (s->at + 1 < s->end && s->at[1] != '\n') s->at++;
        else if (*s->at != ' ' && *s->at != '\t' && *s->at != '\f' && *s->at != '\r' && !(lines && *s->at == '\n'))
            return;
    }
}

static bool take_word(struct scan *s, const char *word)
{
    const int64_t n = (int64_t)strlen(word);
    if (s->end - s->at < n || memcmp(s->at, word, (size_t)n) || (s->end - s->at > n && is_letter(s->at[n]))) return false;
    s->at += n;
    return true;
}

static bool take_char(struct scan *s, char c)
{
    const bool there = s->at < s->end && *s->at == c;
    s->at += there;
    return there;
}

/* Appends a name to `out`; dotted: it may have several parts. Returns false if the text has no name
 * here, or if it is too long for a path. */
static bool take_name(struct scan *s, bool dotted, char out[FS_PATH])
{
    const char *begin = s->at;
    const size_t used = strlen(out);
    while (s->at < s->end && (is_letter(*s->at) || (dotted && *s->at == '.' && s->at > begin))) s->at++;
    const size_t n = (size_t)(s->at - begin);
    if (!n || used + n + 2 > FS_PATH) return false;
    snprintf(out + used, FS_PATH - used, "%s%.*s", used ? "." : "", (int)n, begin);
    return true;
}

/* Skips "as NAME", and returns true if another name follows. */
static bool next_name(struct scan *s, bool lines)
{
    char alias[FS_PATH] = "";
    skip_blanks(s, lines);
    if (take_word(s, "as")) {
        skip_blanks(s, lines);
        take_name(s, false, alias);
        skip_blanks(s, lines);
    }
    const bool more = take_char(s, ',');
    skip_blanks(s, lines);
    return more;
}

/* Reads "import a.b as c, d" behind its first word. */
static tare_status read_import(struct scan *s, struct err *e)
{
    char module[FS_PATH];
    skip_blanks(s, false);
    do {
        module[0] = 0;
        if (!take_name(s, true, module)) return TARE_OK;
        TRY(add_module(s, 0, module, e));
    } while (next_name(s, false));
    return TARE_OK;
}

/* Reads "from ..a.b import c as d, e" or "from . import (c, d)" behind its first word. An imported
 * name may be a module. */
static tare_status read_from(struct scan *s, struct err *e)
{
    char module[FS_PATH] = "", name[FS_PATH];
    int64_t dots = 0;
    for (skip_blanks(s, false); take_char(s, '.'); skip_blanks(s, false)) dots++;
    const bool relative = dots && take_word(s, "import");
    if (!relative) {
        if (!take_name(s, true, module)) return TARE_OK;
        TRY(add_module(s, dots, module, e));
        skip_blanks(s, false);
        if (!take_word(s, "import")) return TARE_OK;
    }
    skip_blanks(s, false);
    const bool lines = take_char(s, '(');
    skip_blanks(s, lines);
    do {
        snprintf(name, sizeof name, "%s", module);
        if (!take_name(s, false, name)) return TARE_OK;
        TRY(add_module(s, dots, name, e));
    } while (next_name(s, lines));
    return TARE_OK;
}

/* Reads the statements at the beginning of a line, and after a semicolon or a colon. */
static tare_status scan_text(struct scan *s, struct err *e)
{
    while (s->at < s->end) {
        skip_blanks(s, false);
        if (take_word(s, "import"))
            TRY(read_import(s, e));
        else if (take_word(s, "from"))
            TRY(read_from(s, e));
        while (s->at < s->end && *s->at != '\n' && *s->at != ';' && *s->at != ':') s->at++;
        s->at += s->at < s->end;
    }
    return TARE_OK;
}

static tare_status scan_file(const char *folder, const char *file, json_t *names, struct err *e)
{
    char path[FS_PATH];
    OWNED(str_free) struct str text = {0};
    struct err why = {0};
    TRY(fs_join(path, folder, file, e));
    if (fs_read_all(path, &text, &why)) {
        if (why.code == TARE_E_NOMEM) FAIL(e, TARE_E_NOMEM, "%s", why.message);
        return TARE_OK;
    }
    struct scan s = {.folder = folder, .file = file, .names = names, .at = text.data, .end = text.data + text.size};
    if (text.size >= 3 && !memcmp(text.data, "\xEF\xBB\xBF", 3)) s.at += 3;
    return scan_text(&s, e);
}

tare_status python_imports(const char *folder, const char *name, json_t *names, struct err *e)
{
    const struct scan s = {.folder = folder, .file = name, .names = names};
    size_t i = json_array_size(names);
    bool there;
    TRY(add_file(&s, name, &there, e));
    for (; i < json_array_size(names); i++) TRY(scan_file(folder, json_string_value(json_array_get(names, i)), names, e));
    return TARE_OK;
}
