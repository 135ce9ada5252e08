/* Checks whether Python's json.loads accepts a text: NaN and Infinity are numbers, integers have at
 * most 4300 digits. */
#include "ifeval.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_DIGITS = 4300 };

struct reader {
    tare_text t;
    int64_t at;
};

static void skip_spaces(struct reader *r)
{
    while (r->at < r->t.size && r->t.data[r->at] && strchr(" \t\r\n", r->t.data[r->at])) r->at++;
}

static char current_char(const struct reader *r)
{
    return r->at < r->t.size ? r->t.data[r->at] : 0;
}

static bool take_word(struct reader *r, const char *word)
{
    if (!text_starts(r->t, r->at, word, false)) return false;
    r->at += (int64_t)strlen(word);
    return true;
}

static bool read_string(struct reader *r)
{
    if (!take_word(r, "\"")) return false;
    for (; r->at < r->t.size; r->at++) {
        const char c = current_char(r);
        if (c == '"') return take_word(r, "\"");
        if ((unsigned char)c < 0x20) return false;
        if (c != '\\') continue;
        r->at++;
        if (!current_char(r) || !strchr("\"\\/bfnrtu", current_char(r))) return false;
        if (current_char(r) != 'u') continue;
        for (int i = 0; i < 4; i++) {
            r->at++;
            if (!current_char(r) || !strchr("0123456789abcdefABCDEF", current_char(r))) return false;
        }
    }
    return false;
}

static int64_t read_digits(struct reader *r)
{
    const int64_t begin = r->at;
    while (text_is_digit(current_char(r))) r->at++;
    return r->at - begin;
}

static bool read_number(struct reader *r)
{
    take_word(r, "-");
    int64_t whole = 1;
    if (!take_word(r, "0") && !(whole = read_digits(r))) return false;
    struct reader fraction = *r, power;
    const bool has_fraction = take_word(&fraction, ".") && read_digits(&fraction);
    if (has_fraction) *r = fraction;
    power = *r;
    const bool has_power = (take_word(&power, "e") || take_word(&power, "E")) &&
                           (take_word(&power, "-") || take_word(&power, "+") || true) && read_digits(&power);
    if (has_power) *r = power;
    return has_fraction || has_power || whole <= MOST_DIGITS;
}

static bool read_scalar(struct reader *r)
{
    static const char *const WORDS[] = {"true", "false", "null", "NaN", "Infinity", "-Infinity"};
    if (current_char(r) == '"') return read_string(r);
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        if (take_word(r, WORDS[i])) return true;
    return read_number(r);
}

static bool read_key(struct reader *r)
{
    skip_spaces(r);
    if (!read_string(r)) return false;
    skip_spaces(r);
    return take_word(r, ":");
}

/* Reads a value of any depth, without recursion. open: [size] stack of open brackets as bytes. */
static bool read_value(struct reader *r, char *open)
{
    int64_t depth = 0;
    for (;;) {
        skip_spaces(r);
        const char c = current_char(r);
        if (c == '[' || c == '{') {
            r->at++;
            skip_spaces(r);
            if (!take_word(r, c == '[' ? "]" : "}")) {
                open[depth++] = c;
                if (c == '{' && !read_key(r)) return false;
                continue;
            }
        } else if (!read_scalar(r)) {
            return false;
        }
        for (skip_spaces(r); depth; skip_spaces(r)) { /* after a value */
            const bool list = open[depth - 1] == '[';
            if (take_word(r, ",")) {
                if (!list && !read_key(r)) return false;
                break;
            }
            if (!take_word(r, list ? "]" : "}")) return false;
            depth--;
        }
        if (!depth) return r->at == r->t.size;
    }
}

tare_status check_json(const struct ifeval_case *c, bool *followed, tare_error *error)
{
    static const char *const PREFIXES[] = {"```json", "```Json", "```JSON", "```"};
    struct reader r = {.t = uni_trim(c->text)};
    /* removed in sequence, as in the reference */
    for (size_t i = 0; i < sizeof PREFIXES / sizeof *PREFIXES; i++)
        if (text_starts(r.t, 0, PREFIXES[i], false)) r.t = text_slice(r.t, (int64_t)strlen(PREFIXES[i]), r.t.size);
    if (r.t.size >= 3 && text_starts(r.t, r.t.size - 3, "```", false)) r.t.size -= 3;
    r.t = uni_trim(r.t);
    char *open = malloc((size_t)r.t.size + 1);
    if (!open) return tare_fail(error, TARE_E_NOMEM, "no memory");
    *followed = read_value(&r, open);
    free(open);
    return TARE_OK;
}
