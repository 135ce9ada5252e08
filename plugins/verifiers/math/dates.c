/* Dates in words: March 14, the 14th of March 2024, Wednesday. Both sides must be dates, and the
 * answer must have every part that the gold answer has. */
#include "prose.h"

#include <string.h>

int64_t half_of_day(tare_text t, int64_t i)
{
    const int64_t n = t.size;
    if (i >= n || !strchr("apAP", t.data[i]) || (i && text_is_letter(t.data[i - 1]))) return 0;
    int64_t k = i + 1;
    const bool stop = k < n && t.data[k] == '.';
    k += stop;
    while (stop && k < n && k < i + 4 && text_is_space(t.data[k])) k++;
    if (k >= n || t.data[k] != (t.data[i] < 'a' ? 'M' : 'm')) return 0;
    k++;
    if (k < n && (text_is_letter(t.data[k]) || strchr("_^('=", t.data[k]))) return 0;
    return k + (stop && k < n && t.data[k] == '.') - i;
}

struct date {
    int weekday, month, day, year; /* 0: not given */
};

/* Returns the index of w in the list, from 1; three letters are enough; 0: not found. */
static int list_index(tare_text w, const char *const *list)
{
    for (int i = 0; list[i]; i++)
        if (text_equal(w, text_of(list[i]), true) || (w.size == 3 && text_equal(w, (tare_text){list[i], 3}, true))) return i + 1;
    return 0;
}

/* Returns whether a word adds nothing to the date. */
static bool is_filler(tare_text w)
{
    int used;
    const char *tex;
    const enum role role = phrase_role(&w, 1, &used, &tex);
    if (role == ROLE_DROP || role == ROLE_IS || role == ROLE_THEN || is_answer_noun(w)) return true;
    static const char *const words[] = {"the",  "of", "on", "in", "a",  "it",  "is",   "was",   "falls", "be",
                                        "will", "th", "st", "nd", "rd", "day", "date", "month", NULL};
    for (const char *const *k = words; *k; k++)
        if (text_equal(w, text_of(*k), true)) return true;
    return false;
}

static const char *const months[] = {"January", "February",  "March",   "April",    "May",      "June", "July",
                                     "August",  "September", "October", "November", "December", NULL};

/* Requires a capital letter: in "5 may", may is a verb. */
bool is_month(tare_text w)
{
    return w.size && w.data[0] >= 'A' && w.data[0] <= 'Z' && list_index(w, months);
}

static bool take_word(struct date *d, tare_text w)
{
    static const char *const days[] = {"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday", NULL};
    if (is_filler(w)) return true;
    int *field = &d->month, k = list_index(w, months);
    if (!k &&
        (text_equal(w, text_of("Sept"), true) || text_equal(w, text_of("Tues"), true) || text_equal(w, text_of("Thurs"), true)))
        w.size = 3;
    if (!k) k = list_index(w, months);
    if (!k) k = list_index(w, days), field = &d->weekday;
    if (!k || *field) return false;
    return *field = k, true;
}

static bool take_number(struct date *d, int value, int64_t digits)
{
    int *field = digits == 4 ? &d->year : &d->day;
    if (*field || !value || (digits != 4 && value > 31)) return false;
    return *field = value, true;
}

static bool has_role(tare_text w, enum role role)
{
    int used;
    const char *tex;
    return phrase_role(&w, 1, &used, &tex) == role;
}

/* Reads the words and numbers of t, skipping commands. false: there is other text. */
static bool read_date(tare_text t, struct date *d)
{
    *d = (struct date){0};
    if (t.size > 80) return false;
    for (int64_t i = 0; i < t.size;) {
        int64_t k = i + (t.data[i] == '\\');
        while (k < t.size && text_is_letter(t.data[k])) k++;
        if (t.data[i] == '\\') { /* \text{, \, and similar */
            i = k > i + 1 ? k : k + 1;
        } else if (k > i) {
            const tare_text w = text_slice(t, i, k);
            /* the date is complete */
            if (d->day && has_role(w, ROLE_REASON)) break;
            /* "14*7 + 2, so": a premise */
            if ((d->day || d->year) && has_role(w, ROLE_THEN)) return false;
            if (!take_word(d, w)) return false;
            i = k;
        } else if (text_is_digit(t.data[i])) {
            int value = 0;
            for (k = i; k < t.size && k < i + 5 && text_is_digit(t.data[k]); k++) value = 10 * value + (t.data[k] - '0');
            if (!take_number(d, value, k - i)) return false;
            i = k;
        } else if (text_is_space(t.data[i]) || strchr("{},.^$~*:", t.data[i])) {
            i++;
        } else {
            return false;
        }
    }
    return d->month || d->weekday;
}

/* Returns whether the text before the date at i leaves it unchanged; "the day before" and "except"
 * do not. */
static bool leads_to_date(tare_text sentence, int64_t at)
{
    static const char *const first[] = {"is ", "was ", "on ", "in ", "falls ", "will ", NULL};
    for (const char *const *f = first; *f; f++)
        if (text_starts(sentence, at, *f, true)) return true;
    const tare_text t = text_trim(text_slice(sentence, 0, at));
    int64_t i = t.size;
    int used;
    const char *tex;
    while (i > 0 && text_is_letter(t.data[i - 1])) i--;
    const tare_text w = text_slice(t, i, t.size);
    if (!w.size) return true;
    const enum role role = phrase_role(&w, 1, &used, &tex);
    return is_filler(w) || role == ROLE_RATIO || role == ROLE_JOINT || (role == ROLE_OPEN && may_precede((tare_text){"", 0}, w));
}

/* Reads a date at the end of a sentence: "The event is on March 14th." */
static bool read_last_date(tare_text sentence, struct date *d)
{
    for (int64_t i = 0; i < sentence.size; i++) {
        if (i && (text_is_letter(sentence.data[i - 1]) || text_is_digit(sentence.data[i - 1]))) continue;
        if (read_date(text_slice(sentence, i, sentence.size), d)) return leads_to_date(sentence, i);
    }
    return false;
}

enum truth compare_dates(tare_text gold, tare_text pred, tare_text sentence)
{
    struct date a, b;
    if (!read_date(gold, &a)) return UNKNOWN;
    if (!read_date(pred, &b) && (sentence.size > 400 || !read_last_date(sentence, &b))) return UNKNOWN;
    const int x[] = {a.weekday, a.month, a.day, a.year}, y[] = {b.weekday, b.month, b.day, b.year};
    for (int i = 0; i < 4; i++)
        if (x[i] && x[i] != y[i]) return NO;
    return (b.month && !a.month) || (b.day && !a.day) ? NO : YES;
}
