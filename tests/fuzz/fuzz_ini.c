/* libFuzzer target: configurations. If the first byte is even, the rest is the file; a byte 0x1e
 * begins the next file, which it may include. If it is odd, the rest is a program that writes
 * files with existing sections, keys and values, and overrides of the command line.
 *
 * An accepted configuration is printed and read again. The second print must equal the first
 * except for the notes of a value's origin (" ; run.as = trl"), because the values now come from
 * the file. When all errors are requested, at least one is reported exactly when loading fails. */
#define _GNU_SOURCE
#include "base/log.h"
#include "bytes.h"
#include "config/keys.h"

#include "base/fs.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FILES = 3, OVERRIDES = 4, OVERRIDE = 400 };
static const char *const NAMES[FILES + 1] = {"a.ini", "b.ini", "c.ini", "dump.ini"};
static const char *const SECTIONS[] = {"sweep",      "estimator.grpo", "verifier.command", "codebook.kmeans", "encoder.hashed",
                                       "codebook.x", "objective.ppo",  "estimator.a.b",    "estimator.",      "no such"};
static const char *const VALUES[] = {"true",
                                     "no",
                                     "0",
                                     "-1",
                                     "1e-5",
                                     "1e400",
                                     "nan",
                                     "0x10",
                                     "9223372036854775807",
                                     "",
                                     "none",
                                     "auto",
                                     "\"quoted ; # \\\\ \\\"\"",
                                     "\"open",
                                     "1 ; a comment",
                                     "1 # no comment",
                                     "${run.seed}",
                                     "${run.name}",
                                     "${run.dir}",
                                     "${",
                                     "a,b",
                                     "1..3",
                                     "x\\n",
                                     "/",
                                     "../..",
                                     ".",
                                     "1,2,3",
                                     "\xc3\xa4",
                                     "a.jsonl:0.7 b.jsonl:0.3"};
static const char *const INCLUDES[] = {"a.ini", "b.ini", "c.ini", "./b.ini", "gone.ini", ".", "/dev/null", "", "\"c.ini\" ; it"};
#define COUNT(LIST) (sizeof(LIST) / sizeof *(LIST))

static char folder[FS_PATH];
static void remove_folder(void)
{
    fs_remove_tree(folder, NULL);
}

static void add(struct str *out, const char *text)
{
    if (str_add(out, text, -1, NULL)) abort();
}

static const struct config_key *any_key(struct bytes *b)
{
    const int at = byte(b) * 256 + byte(b);
    return &CONFIG_KEYS[at % (int)config_n_keys()];
}

static void add_value(struct str *out, struct bytes *b, const struct config_key *k)
{
    char number[40];
    size_t n;
    const char *raw;
    const int how = byte(b) % 6;
    if (how == 0) {
        add(out, k->fallback);
    } else if (how == 1 && k->choices) {
        int choices = 0;
        while (k->choices[choices]) choices++;
        add(out, k->choices[byte(b) % choices]);
    } else if (how == 2) {
        snprintf(number, sizeof number, "%lld", (long long)bytes_number(b));
        add(out, number);
    } else if (how == 3) {
        raw = bytes_take(b, (size_t)byte(b), &n);
        if (n && str_add(out, raw, (int64_t)n, NULL)) abort();
    } else {
        add(out, VALUES[(size_t)byte(b) % COUNT(VALUES)]);
    }
}

/* Writes one line, or a part of one. The open section is that of *k. */
static void add_line(struct str *out, struct bytes *b, const struct config_key **k)
{
    switch (byte(b) % 8) {
    case 0: /* a section: that of a key that comes next */
        *k = any_key(b);
        str_addf(out, NULL, "[%s]\n", (*k)->section);
        break;
    case 1:
    case 2: /* a key of this section; the keys of a section are consecutive */
        for (int i = byte(b) % 16; i > 0 && (*k)[1].section && !strcmp((*k)[1].section, (*k)->section); i--) (*k)++;
        str_addf(out, NULL, "%s = ", (*k)->key);
        add_value(out, b, *k);
        add(out, "\n");
        break;
    case 3:
        str_addf(out, NULL, "[%s]\n", SECTIONS[(size_t)byte(b) % COUNT(SECTIONS)]);
        break;
    case 4:
        str_addf(out, NULL, "key%d = %s\n", byte(b) % 4, VALUES[(size_t)byte(b) % COUNT(VALUES)]);
        break;
    case 5:
        str_addf(out, NULL, "include = %s\n", INCLUDES[(size_t)byte(b) % COUNT(INCLUDES)]);
        break;
    case 6:
        add(out, byte(b) & 1 ? "; a comment\r\n" : "   # another\n\n");
        break;
    default: {
        size_t n;
        const char *raw = bytes_take(b, (size_t)byte(b), &n);
        if (n && str_add(out, raw, (int64_t)n, NULL)) abort();
    }
    }
}

struct words {
    char text[OVERRIDES][OVERRIDE];
    const char *at[OVERRIDES];
    int64_t n;
};

static void add_override(struct words *w, struct bytes *b)
{
    struct str value = {0};
    if (w->n == OVERRIDES) return;
    const struct config_key *k = any_key(b);
    add_value(&value, b, k);
    char *to = w->text[w->n];
    snprintf(to, OVERRIDE, "%s%s%s%s%s", byte(b) & 7 ? k->section : "as", byte(b) & 7 ? "." : "", k->key, byte(b) & 7 ? "=" : "",
             value.data ? value.data : "");
    w->at[w->n++] = to;
    str_free(&value);
}

static void write_file(int where, const char *name, const struct str *text)
{
    const int fd = openat(where, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || (text->size && write(fd, text->data, (size_t)text->size) != text->size)) abort();
    close(fd);
}

static void report_fault(const struct err *e)
{
    if (!e->code || !*e->message) abort();
}

/* Removes " ; run.as = NAME" from the ends of lines. */
static void without_notes(struct str *text)
{
    static const char NOTE[] = " ; run.as = ";
    char *to = text->data;
    for (const char *at = text->data, *line_end; at && *at; at = line_end) {
        line_end = strchr(at, '\n');
        line_end = line_end ? line_end + 1 : at + strlen(at);
        const char *end = line_end;
        for (const char *note = at; (note = strstr(note, NOTE)) && note < line_end; note++) {
            const char *name = note + sizeof NOTE - 1;
            if (name[strspn(name, "abcdefghijklmnopqrstuvwxyz")] == '\n') end = note;
        }
        memmove(to, at, (size_t)(end - at));
        to += end - at;
        if (end != line_end) *to++ = '\n';
    }
    text->size = to - text->data;
    if (text->data) *to = 0; /* printed when two texts differ */
}

static void check(const char *path, const struct words *w)
{
    struct config c, again;
    struct err e = {0};
    struct faults faults = {.report = report_fault};
    struct str text = {0}, second = {0};
    char dump[FS_PATH];
    const tare_status status = config_load(&c, path, w->at, w->n, &e);
    if (status && (status != e.code || !*e.message)) abort();
    struct config all;
    const tare_status other = config_load_collecting(&all, path, w->at, w->n, &faults, &e);
    if ((!status) != (!other && !faults.n)) abort();
    if (!other) config_free(&all);
    if (status) return;
    if (config_dump(&c, &text, &e)) abort();
    if (fs_join(dump, folder, "dump.ini", NULL)) abort();
    FILE *f = fopen(dump, "w");
    if (!f || fwrite(text.data, 1, (size_t)text.size, f) != (size_t)text.size || fclose(f)) abort();
    if (config_load(&again, dump, NULL, 0, &e)) {
        fprintf(stderr, "the printed configuration cannot be read: %s\n%s", e.message, text.data);
        abort();
    }
    if (config_dump(&again, &second, &e)) abort();
    without_notes(&text);
    without_notes(&second);
    if (text.size != second.size || memcmp(text.data, second.data, (size_t)text.size)) {
        fprintf(stderr, "printed: %s\nread and printed: %s", text.data, second.data);
        abort();
    }
    str_free(&text);
    str_free(&second);
    config_free(&c);
    config_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int where = -1;
    struct str file[FILES] = {0};
    static struct words words;
    char path[FS_PATH];
    int at = 0;
    if (where < 0 && !fs_temporary(folder, "tare-fuzz", NULL) && mkdtemp(folder)) {
        where = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        log_set_level(LOG_NONE);
        atexit(remove_folder);
    }
    if (where < 0 || !size) return 0;
    words.n = 0;
    struct bytes b = {data + 1, data + size};
    const struct config_key *k = CONFIG_KEYS;
    while (b.at < b.end) {
        if (!(data[0] & 1)) {
            if (*b.at == 0x1e && at + 1 < FILES)
                at++;
            else if (str_add(&file[at], (const char *)b.at, 1, NULL))
                abort();
            b.at++;
            continue;
        }
        const int what = byte(&b) % 32;
        if (what == 0)
            at = (at + 1) % FILES;
        else if (what == 1)
            add_override(&words, &b);
        else
            add_line(&file[at], &b, &k);
    }
    for (int i = 0; i < FILES; i++) write_file(where, NAMES[i], &file[i]);
    if (fs_join(path, folder, "a.ini", NULL)) abort();
    check(path, &words);
    for (int i = 0; i < FILES; i++) str_free(&file[i]);
    return 0;
}
