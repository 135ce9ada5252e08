#include "common/fences.h"

#include <string.h>

static int64_t next_line(tare_text t, int64_t i)
{
    const char *end = i < t.size ? memchr(t.data + i, '\n', (size_t)(t.size - i)) : NULL;
    return end ? end - t.data + 1 : t.size;
}

/* Returns the number of fence characters at i; fewer than 3: no fence. */
static int64_t run_of(tare_text t, int64_t i, char mark)
{
    int64_t n = 0;
    while (i + n < t.size && t.data[i + n] == mark) n++;
    return n;
}

/* Skips blanks and the > of quotations. lists: also one mark of a list, "-", "*", "+" or "1.", with
 * its blank. */
static int64_t skip_prefix(tare_text t, int64_t i, int64_t end, bool lists)
{
    while (i < end && (t.data[i] == ' ' || t.data[i] == '\t' || t.data[i] == '>')) i++;
    if (!lists) return i;
    int64_t k = i;
    if (k < end && strchr("-*+", t.data[k]))
        k++;
    else {
        while (k < end && text_is_digit(t.data[k])) k++;
        k = k > i && k < end && strchr(".)", t.data[k]) ? k + 1 : i;
    }
    if (k == i || k >= end || t.data[k] != ' ') return i;
    while (k < end && t.data[k] == ' ') k++;
    return k;
}

/* Reads an opening fence in the line [i, end). Returns the number of its characters; 0: none. */
static int64_t open_fence(tare_text t, int64_t i, int64_t end, struct fence *f)
{
    int64_t at = skip_prefix(t, i, end, true);
    const char mark = at < end ? t.data[at] : 0;
    const int64_t n = mark == '`' || mark == '~' ? run_of(t, at, mark) : 0;
    if (n < 3) return 0;
    if (mark == '`' && at + n < end && memchr(t.data + at + n, '`', (size_t)(end - at - n))) return 0; /* code in a line */
    f->prefix = text_slice(t, i, at);
    for (at += n; at < end && strchr(" {.", t.data[at]);) at++;
    int64_t k = at;
    while (k < end && !text_is_space(t.data[k]) && !strchr("},:;", t.data[k])) k++;
    f->label = text_slice(t, at, k);
    return n;
}

static bool closes(tare_text t, int64_t i, int64_t end, char mark, int64_t n)
{
    const int64_t at = skip_prefix(t, i, end, false);
    if (at >= end || t.data[at] != mark) return false;
    const int64_t have = run_of(t, at, mark);
    return have >= n && !text_trim(text_slice(t, at + have, end)).size;
}

static bool is_code(tare_text label)
{
    const enum fence_kind kind = fence_kind_of(label);
    return kind == FENCE_PYTHON || kind == FENCE_PROGRAM;
}

bool fence_next(tare_text t, int64_t *at, struct fence *f)
{
    int64_t i = *at, n = 0;
    while (i < t.size && !n) {
        const int64_t end = next_line(t, i);
        n = open_fence(t, i, end, f);
        if (n) f->whole = text_slice(t, i, t.size);
        i = end;
    }
    if (!n) return false;
    const int64_t begin = f->whole.data - t.data, body = i;
    const char mark = t.data[begin + f->prefix.size];
    f->body = text_slice(t, body, t.size);
    while (i < t.size) {
        const int64_t end = next_line(t, i);
        struct fence inner;
        const bool closed = closes(t, i, end, mark, n);
        if (closed || (!is_code(f->label) && open_fence(t, i, end, &inner) && is_code(inner.label))) {
            f->body = text_slice(t, body, i);
            f->whole = text_slice(t, begin, closed ? end : i);
            *at = closed ? end : i;
            return true;
        }
        i = end;
    }
    *at = t.size;
    return true;
}

enum fence_kind fence_kind_of(tare_text label)
{
    static const char *const python[] = {"python", "py", "python3", "py3", "python2", "python-3", "ipython", "pypy", "pypy3", NULL};
    static const char *const program[] = {
        "c",          "cpp",        "c++",         "cc",      "cxx",      "h",        "hpp",        "cs",       "csharp",
        "c#",         "java",       "javascript",  "js",      "jsx",      "mjs",      "typescript", "ts",       "tsx",
        "node",       "rust",       "rs",          "go",      "golang",   "ruby",     "rb",         "php",      "perl",
        "pl",         "swift",      "kotlin",      "kt",      "scala",    "haskell",  "hs",         "lua",      "r",
        "julia",      "jl",         "matlab",      "octave",  "sage",     "sagemath", "maple",      "wolfram",  "mathematica",
        "fortran",    "pascal",     "delphi",      "dart",    "elixir",   "erlang",   "clojure",    "lisp",     "scheme",
        "racket",     "ocaml",      "fsharp",      "f#",      "prolog",   "lean",     "lean4",      "coq",      "isabelle",
        "sql",        "mysql",      "postgresql",  "sqlite",  "bash",     "sh",       "shell",      "zsh",      "fish",
        "powershell", "ps1",        "bat",         "cmd",     "batch",    "awk",      "sed",        "makefile", "make",
        "cmake",      "dockerfile", "asm",         "nasm",    "assembly", "verilog",  "vhdl",       "solidity", "groovy",
        "vb",         "basic",      "objective-c", "objc",    "zig",      "nim",      "cuda",       "glsl",     "pseudocode",
        "html",       "css",        "scss",        "gnuplot", "tikz",     "asy",      "asymptote",  NULL};
    static const char *const json[] = {"json", "jsonc", "json5", "geojson", NULL};
    static const char *const text[] = {
        "text",     "txt",           "plaintext",  "plain",  "output",  "out",  "stdout",   "stdin", "stderr", "input", "console",
        "terminal", "shell-session", "sh-session", "pycon",  "log",     "none", "markdown", "md",    "latex",  "tex",   "math",
        "yaml",     "yml",           "toml",       "ini",    "xml",     "csv",  "tsv",      "diff",  "patch",  "jsonl", "traceback",
        "error",    "result",        "example",    "answer", "mermaid", "dot",  "graphviz", NULL};
    if (text_one_of(label, python)) return FENCE_PYTHON;
    if (text_one_of(label, program)) return FENCE_PROGRAM;
    if (text_one_of(label, json)) return FENCE_JSON;
    return text_one_of(label, text) ? FENCE_TEXT : FENCE_PLAIN;
}

/* Returns the position behind the part of the line [i, end) that stands under the prefix. */
static int64_t under_prefix(tare_text t, int64_t i, int64_t end, tare_text prefix)
{
    for (int64_t k = 0; k < prefix.size && i < end; k++) {
        const char want = prefix.data[k], have = t.data[i];
        if (want == '>' ? have != '>' : have != ' ' && have != '\t') {
            if (want == '>' || have == '\n') break;
            return i; /* less indented than its fence */
        }
        i++;
    }
    return i;
}

int64_t fence_copy(const struct fence *f, char *to)
{
    int64_t n = 0;
    for (int64_t i = 0; i < f->body.size;) {
        const int64_t end = next_line(f->body, i), from = under_prefix(f->body, i, end, f->prefix);
        memcpy(to + n, f->body.data + from, (size_t)(end - from));
        n += end - from;
        i = end;
    }
    return n;
}

/* Returns whether the line before the block says that it shows an input or an output. */
static bool is_shown(tare_text t, const struct fence *f)
{
    static const char *const words[] = {"output", "outputs", "input",    "prints",  "printed", "print",
                                        "result", "returns", "displays", "example", "console", NULL};
    int64_t end = f->whole.data - t.data, i;
    while (end > 0 && text_is_space(t.data[end - 1])) end--;
    for (i = end; i > 0 && t.data[i - 1] != '\n' && end - i < 200;) i--;
    while (i < end) {
        int64_t k = i;
        while (k < end && text_is_letter(t.data[k])) k++;
        if (k > i && text_one_of(text_slice(t, i, k), words)) return true;
        i = k + 1;
    }
    return false;
}

/* Returns whether a line of the block, which begins as the fence does, defines a function or a class. */
static bool defines(const struct fence *f)
{
    for (int64_t i = 0; i < f->body.size; i = next_line(f->body, i)) {
        int64_t k = under_prefix(f->body, i, next_line(f->body, i), f->prefix);
        if (text_starts(f->body, k, "def ", false) || text_starts(f->body, k, "class ", false) ||
            text_starts(f->body, k, "async def ", false))
            return true;
        while (k < f->body.size && (text_is_letter(f->body.data[k]) || text_is_digit(f->body.data[k]) || f->body.data[k] == '_'))
            k++;
        if (text_starts(f->body, k, " = lambda", false)) return true;
    }
    return false;
}

bool fence_choose(tare_text t, enum fence_kind kind, struct fence *f, bool *others)
{
    enum { SHOWN = 1, PLAIN, LABELLED, DEFINING } best = 0;
    const bool functions = kind == FENCE_FUNCTIONS;
    struct fence one;
    if (functions) kind = FENCE_PYTHON;
    *others = false;
    for (int64_t at = 0; fence_next(t, &at, &one);) {
        const enum fence_kind is = fence_kind_of(one.label);
        if (is != kind && is != FENCE_PLAIN) {
            *others = true;
            continue;
        }
        const tare_text body = text_trim(one.body);
        const bool structure = kind == FENCE_JSON && body.size && strchr("{[", body.data[0]);
        const int labelled = functions && defines(&one) ? DEFINING : LABELLED;
        const int rank = is == kind ? labelled : is_shown(t, &one) ? SHOWN : structure ? LABELLED : PLAIN;
        if (rank < (int)best) continue;
        best = rank;
        *f = one;
    }
    return best > 0;
}

/* Returns t without blank lines in front and blanks behind: the indentation of the first line stays. */
static tare_text trim_lines(tare_text t)
{
    int64_t begin = 0;
    for (int64_t i = 0; i < t.size && text_is_space(t.data[i]); i++)
        if (t.data[i] == '\n') begin = i + 1;
    t = text_slice(t, begin, t.size);
    while (t.size && text_is_space(t.data[t.size - 1])) t.size--;
    return t;
}

/* Returns the size of the blank or invisible sign at i; 0: another sign. back: of the one that ends at i. */
static int64_t blank_at(tare_text t, int64_t i, bool back)
{
    /* byte order mark, no-break and ideographic space, zero-width space */
    static const char *const signs[] = {"\xEF\xBB\xBF", "\xC2\xA0", "\xE3\x80\x80", "\xE2\x80\x8B", " ", "\n", "\r", "\t"};
    for (size_t k = 0; k < sizeof signs / sizeof *signs; k++) {
        const int64_t n = (int64_t)strlen(signs[k]);
        if (text_starts(t, back ? i - n : i, signs[k], false)) return n;
    }
    return 0;
}

static tare_text trim_signs(tare_text t)
{
    int64_t begin = 0, n;
    while ((n = blank_at(t, t.size, true))) t.size -= n;
    while ((n = blank_at(t, begin, false))) begin += n;
    return text_slice(t, begin, t.size);
}

/* Cuts the text of tokens that end a turn: <|im_end|>, </s>, ... */
static tare_text cut_end(tare_text t)
{
    static const char *const ends[] = {"</s>", "<eos>", "<end_of_turn>"};
    for (int64_t before = -1; before != t.size;) {
        before = t.size;
        t = trim_signs(t);
        for (size_t k = 0; k < sizeof ends / sizeof *ends; k++)
            if (text_starts(t, t.size - (int64_t)strlen(ends[k]), ends[k], false)) t.size -= (int64_t)strlen(ends[k]);
        if (!text_starts(t, t.size - 2, "|>", false)) continue;
        int64_t i = t.size - 2;
        while (i > 0 && (text_is_letter(t.data[i - 1]) || text_is_digit(t.data[i - 1]) || t.data[i - 1] == '_')) i--;
        if (i < t.size - 2 && text_starts(t, i - 2, "<|", false)) t.size = i - 2;
    }
    return t;
}

/* Returns what a line of code in a sentence, `...`, encloses, if t is nothing else. */
static tare_text trim_ticks(tare_text t)
{
    if (t.size < 3 || t.data[0] != '`' || t.data[t.size - 1] != '`') return t;
    const tare_text inside = text_slice(t, 1, t.size - 1);
    return memchr(inside.data, '`', (size_t)inside.size) || memchr(inside.data, '\n', (size_t)inside.size) ? t : inside;
}

tare_text fence_value(tare_text t, enum fence_kind kind, char *to)
{
    struct fence f;
    bool others;
    t = cut_end(t);
    if (fence_choose(t, kind, &f, &others)) return trim_lines((tare_text){to, fence_copy(&f, to)});
    const tare_text tagged = text_tagged_answer(t), whole = trim_ticks(trim_signs(tagged.size >= 0 ? tagged : t));
    if (others && tagged.size < 0) return (tare_text){to, 0};
    if (whole.size) memcpy(to, whole.data, (size_t)whole.size);
    return text_trim((tare_text){to, whole.size});
}
