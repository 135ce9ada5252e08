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

bool fence_choose(tare_text t, enum fence_kind kind, struct fence *f, bool *others)
{
    enum { SHOWN = 1, PLAIN, LABELLED } best = 0;
    struct fence one;
    *others = false;
    for (int64_t at = 0; fence_next(t, &at, &one);) {
        const enum fence_kind is = fence_kind_of(one.label);
        if (is != kind && is != FENCE_PLAIN) {
            *others = true;
            continue;
        }
        const tare_text body = text_trim(one.body);
        const bool structure = kind == FENCE_JSON && body.size && strchr("{[", body.data[0]);
        const int rank = is == kind ? LABELLED : is_shown(t, &one) ? SHOWN : structure ? LABELLED : PLAIN;
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

tare_text fence_value(tare_text t, enum fence_kind kind, char *to)
{
    struct fence f;
    bool others;
    if (fence_choose(t, kind, &f, &others)) return trim_lines((tare_text){to, fence_copy(&f, to)});
    const tare_text tagged = text_tagged_answer(t), whole = tagged.size >= 0 ? tagged : t;
    if (others && tagged.size < 0) return (tare_text){to, 0};
    if (whole.size) memcpy(to, whole.data, (size_t)whole.size);
    return text_trim((tare_text){to, whole.size});
}
