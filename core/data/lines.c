#include "data/lines.h"

#include <string.h>

struct lines lines_begin(const struct str *text)
{
    struct lines l = {text->data, text->data + text->size, 0};
    if (text->size >= 3 && !memcmp(text->data, "\xEF\xBB\xBF", 3)) l.p += 3; /* byte order mark */
    return l;
}

bool lines_next(struct lines *l, tare_text *out)
{
    while (l->p < l->end) {
        const char *begin = l->p, *newline = memchr(l->p, '\n', (size_t)(l->end - l->p));
        const char *stop = newline ? newline : l->end;
        l->p = newline ? newline + 1 : l->end;
        l->number++;
        while (stop > begin && strchr(" \t\r", stop[-1]) && stop[-1]) stop--;
        if (stop == begin) continue;
        *out = (tare_text){begin, stop - begin};
        return true;
    }
    return false;
}

tare_status lines_refuse_list(const char *path, const struct str *text, struct err *e)
{
    const struct lines l = lines_begin(text);
    const char *p = l.p;
    while (p < l.end && *p && strchr(" \t\r\n", *p)) p++;
    if (p == l.end || *p != '[') return TARE_OK;
    FAIL(e, TARE_E_CONFIG,
         "%s is a JSON list, but a data file has one JSON object per line, {\"question\": ...}; tools/to_jsonl.py converts a list",
         path);
}

void lines_where(char where[FS_PATH], const char *path, int64_t line)
{
    snprintf(where, FS_PATH, "%.*s:%lld", FS_PATH - 32, path, (long long)line);
}

uint64_t lines_hash_text(uint64_t h, tare_text t)
{
    const int64_t size = t.data ? t.size : -1;
    return fs_hash(t.data ? t.data : "", t.size, fs_hash(&size, sizeof size, h));
}
