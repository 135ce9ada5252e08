/* Finds the part of a text that gives its number, by the reading of sentences that math has. */
#include "claimed.h"
#include "math/prose.h"
#include "math/scan.h"

#include <string.h>

/* Returns where the words behind a value at i end: at the next digit, or with the sentence. */
static int64_t words_end(tare_text t, int64_t i)
{
    while (i < t.size && !text_is_digit(t.data[i]) && !strchr(".,;:!?\n", t.data[i])) i++;
    return i;
}

tare_text number_claimed(tare_text t)
{
    static const struct options how = {.use_expr = true, .guess = true};
    struct found found;
    extract_answer(&how, t, &found);
    if (!found.n || found.operated) return (tare_text){"", 0};
    const tare_text value = found.text[0];
    const bool guess = !strncmp(found.rule, "last", 4);
    const int64_t begin = value.data - t.data, end = words_end(t, begin + value.size);
    int64_t digit = 0;
    while (digit < value.size && !text_is_digit(value.data[digit])) digit++;
    if (is_bound(text_slice(value, 0, digit)) || (!guess && is_qualified(text_slice(value, digit, value.size))))
        return (tare_text){"", 0};
    return text_slice(t, guess ? 0 : begin, end);
}

bool number_is_cut(tare_text t)
{
    const int64_t box = text_find_last(t, "\\boxed{");
    return is_unfinished(t) || (box >= 0 && text_group_end(t, box + 6) < 0);
}
