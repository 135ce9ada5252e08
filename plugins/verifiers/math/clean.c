/* Writes a completion without what is not read as an answer: programs in fenced blocks, struck out text, tags of HTML. */
#include "common/fences.h"
#include "math.h"

#include <stdlib.h>
#include <string.h>

static void blank_out(struct math *m, tare_text t, tare_text part)
{
    const int64_t at = part.data - t.data;
    for (int64_t i = 0; i < part.size; i++)
        if (m->clean[at + i] != '\n') m->clean[at + i] = ' ';
}

/* Returns whether the text in front of a block announces its content: "Final answer:", "Output". */
static bool announces(tare_text front)
{
    static const char *const words[] = {"answer", "output", "result", "prints", NULL};
    front = text_trim(front);
    int64_t begin = front.size;
    while (begin > 0 && front.data[begin - 1] != '\n') begin--;
    for (int64_t i = begin; i < front.size && front.size - begin < 100; i++)
        for (const char *const *w = words; *w; w++)
            if (text_starts(front, i, *w, true)) return true;
    return false;
}

static bool has_program(tare_text body)
{
    static const char *const signs[] = {"print(", "def ", "import ", "return ", "range(", "console.log", "#include", NULL};
    for (const char *const *s = signs; *s; s++)
        if (text_find(body, *s) >= 0) return true;
    return false;
}

static bool is_program(const struct fence *f)
{
    const enum fence_kind kind = fence_kind_of(f->label);
    return kind == FENCE_PYTHON || kind == FENCE_PROGRAM || kind == FENCE_JSON || has_program(f->body);
}

static void blank_blocks(struct math *m, tare_text t)
{
    struct fence f;
    for (int64_t at = 0; fence_next(t, &at, &f);) {
        const int64_t begin = f.whole.data - t.data, end = begin + f.whole.size;
        const tare_text front = text_slice(t, 0, begin), back = text_slice(t, end, t.size);
        const bool last = !text_trim(back).size, alone = last && !text_trim(front).size;
        const tare_text body = text_trim(f.body);
        const bool value = body.size && body.size < 200 && !memchr(body.data, '\n', (size_t)body.size) &&
                           !memchr(body.data, '#', (size_t)body.size) && !memchr(body.data, '"', (size_t)body.size) &&
                           !memchr(body.data, ':', (size_t)body.size) && !has_program(body) && text_find(body, "print") < 0 &&
                           text_find(body, " = ") < 0;
        const bool program = is_program(&f);
        const bool kept = alone ? !program || value : announces(front) ? !program || value : last && !program;
        if (!kept) {
            blank_out(m, t, f.whole);
            continue;
        }
        blank_out(m, t, text_slice(t, begin, f.body.data - t.data));
        blank_out(m, t, text_slice(t, f.body.data - t.data + f.body.size, end));
    }
}

/* Struck out: ~~24~~ of Markdown, \cancel{24}. */
static void blank_struck(struct math *m, tare_text t)
{
    enum { FAR = 400 };
    for (int64_t i = 0; i + 3 < t.size; i++) {
        if (t.data[i] == '~' && t.data[i + 1] == '~' && t.data[i + 2] != '~' && !text_is_space(t.data[i + 2])) {
            int64_t k = i + 2;
            while (k + 1 < t.size && k < i + FAR && t.data[k] != '\n' && !(t.data[k] == '~' && t.data[k + 1] == '~')) k++;
            if (k + 1 < t.size && t.data[k] == '~' && t.data[k + 1] == '~') {
                blank_out(m, t, text_slice(t, i, k + 2));
                i = k + 1;
            }
        } else if (t.data[i] == '\\' && text_starts(t, i, "\\cancel{\\boxed", false)) {
            const int64_t end = text_group_end(text_slice(t, 0, i + FAR < t.size ? i + FAR : t.size), i + 7);
            if (end >= 0) blank_out(m, t, text_slice(t, i, end));
        }
    }
}

/* Tags that only set type around words, and the tokens that end a text. */
static void blank_tags(struct math *m, tare_text t)
{
    static const char *const tags[] = {"<b>",  "</b>", "<strong>", "</strong>", "<em>", "</em>", "<i>",   "</i>", "<p>",
                                       "</p>", "<u>",  "</u>",     "</s>",      "<br>", "<br/>", "<eos>", NULL};
    for (int64_t i = 0; i < t.size; i++)
        if (t.data[i] == '<')
            for (const char *const *w = tags; *w; w++)
                if (text_starts(t, i, *w, true)) blank_out(m, t, text_slice(t, i, i + (int64_t)strlen(*w)));
}

/* \textbf{Final Answer: 58}: words in bold are words. */
static void blank_bold(struct math *m, tare_text t)
{
    enum { FAR = 200 };
    for (int64_t i = 0; i + 8 < t.size; i++) {
        if (t.data[i] != '\\' || !text_starts(t, i, "\\textbf{", false)) continue;
        const int64_t end = text_group_end(text_slice(t, 0, i + FAR < t.size ? i + FAR : t.size), i + 7);
        bool answer = false;
        for (int64_t n = i + 8; n < end && n < i + 24; n++) answer |= text_starts(t, n, "answer", true);
        if (!answer) continue;
        blank_out(m, t, text_slice(t, i, i + 8));
        m->clean[end - 1] = ' ';
    }
}

bool clean_text(struct math *m, tare_text completion, tare_text *out)
{
    const tare_text t = text_after_thought(completion, m->o.opened);
    const bool fences = t.size && (memchr(t.data, '`', (size_t)t.size) || memchr(t.data, '~', (size_t)t.size));
    const bool tags = t.size && memchr(t.data, '<', (size_t)t.size);
    bool struck = fences, bold = false;
    for (const char *p = t.data; t.size && (p = memchr(p, '\\', (size_t)(t.data + t.size - p))); p++) {
        if (p + 1 == t.data + t.size || (p[1] != 'c' && p[1] != 't')) continue;
        struck |= text_starts(t, p - t.data, "\\cancel{\\boxed", false);
        bold |= text_starts(t, p - t.data, "\\textbf{", false);
    }
    *out = t;
    if (!fences && !struck && !tags && !bold) return true;
    if (t.size > m->clean_capacity) {
        char *more = realloc(m->clean, (size_t)t.size);
        if (!more) return false;
        m->clean = more;
        m->clean_capacity = t.size;
    }
    memcpy(m->clean, t.data, (size_t)t.size);
    if (fences) blank_blocks(m, t);
    if (struck) blank_struck(m, t);
    if (tags) blank_tags(m, t);
    if (bold) blank_bold(m, t);
    out->data = m->clean;
    return true;
}
