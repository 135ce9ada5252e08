/* Fenced blocks of Markdown: the lines between two lines of ``` or ~~~. Nothing here allocates; all
 * functions are pure, and linear in the text. */
#ifndef TARE_VERIFIERS_FENCES_H
#define TARE_VERIFIERS_FENCES_H

#include "common/text.h"

struct fence {
    tare_text whole;  /* from the line of the opening fence to that of the closing one */
    tare_text label;  /* first word behind the opening fence, without { } and . : "python"; may be empty */
    tare_text body;   /* the lines between */
    tare_text prefix; /* text before the opening fence: blanks, > of a quotation, the mark of a list */
};

/* Finds the next block from *at on and moves *at behind it. A block that is labelled as a program
 * ends any block before it that is not closed and is no program. */
bool fence_next(tare_text t, int64_t *at, struct fence *f);

/* Kinds of block, by its label. Labels are compared without case. */
enum fence_kind {
    FENCE_PLAIN,  /* no label, or one that is not known */
    FENCE_PYTHON, /* python, py, python3, ... */
    /* Only as the kind of value: Python, and blocks that define a function or a class precede others, so
     * that an example of its use does not replace the program. */
    FENCE_FUNCTIONS,
    FENCE_PROGRAM, /* another programming language, or a shell */
    FENCE_JSON,
    FENCE_TEXT /* text, output, console, markdown, latex, data formats */
};
enum fence_kind fence_kind_of(tare_text label);

/* Finds the block that holds a value of the kind: the last one that is labelled so (for JSON, or that
 * begins with a bracket); else the last plain one, but not one that a line such as "Output:" introduces if there is another. False: none;
 * *others: there are blocks, of other kinds. */
bool fence_choose(tare_text t, enum fence_kind kind, struct fence *f, bool *others);

/* Writes the body without the prefix of its lines to `to`, which has capacity for the body, and
 * returns its size. */
int64_t fence_copy(const struct fence *f, char *to);

/* Writes the value of the kind that a completion gives to `to`, which has capacity for t: its block
 * (fence_choose), else the text between <answer> tags, else the whole text, if it has no blocks of
 * other kinds. Returns it without blanks, invisible signs and the `` of a line of code around; size 0:
 * none. Text of an end-of-turn token behind t is left out. */
tare_text fence_value(tare_text t, enum fence_kind kind, char *to);

#endif
