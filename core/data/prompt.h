/* Turns a row into the ids of its prompt.
 * data.prompt = chat   system message (if set), then one user message: question + suffix, or the
 *                      row's own messages instead (the suffix is appended to the last user message);
 *                      rendered with the chat template and the generation prompt, encoded without
 *                      adding special tokens (the template writes them). A last message of the
 *                      assistant is continued instead. The row's "chat_template_kwargs" and "tools"
 *                      are variables of the template.
 * data.prompt = plain  question + suffix, after BOS if the tokenizer adds one
 * The options of a row with choices are part of its question (choices.h). Threads: prompts may be
 * built from several threads. */
#ifndef TARE_CORE_DATA_PROMPT_H
#define TARE_CORE_DATA_PROMPT_H

#include "config/config.h"
#include "data/dataset.h"
#include "data/tokenizer.h"
#include "template/chat.h"

struct prompts;

/* The tokenizer is borrowed. folder: the model's, for its chat template. Refuses chat prompts
 * without a template. */
tare_status prompts_new(const struct data_config *config, const char *folder, const struct tokenizer *t, struct prompts **out,
                        struct err *e);
void prompts_free(struct prompts *p);
/* Appends the text to be encoded. */
tare_status prompts_text(const struct prompts *p, const struct row *row, struct str *out, struct err *e);
/* Appends the ids. */
tare_status prompts_encode(const struct prompts *p, const struct row *row, struct token_ids *out, struct err *e);

/* A message that follows a row's prompt, or an answer. */
struct prompt_message {
    const char *role;
    tare_text text, name, call_id; /* of the tool and of its call; size 0: none */
};
struct prompt_turn {
    const struct prompt_message *m; /* [n] */
    int64_t n;
    const json_t *tools; /* a list for the template; replaces the row's; NULL: none */
};
/* Appends the prompt of a row that ends with more messages. question: after the row's own messages;
 * false: those alone, behind the system message if there is one. Chat only. */
tare_status prompts_text_with(const struct prompts *p, const struct row *row, bool question, struct prompt_turn turn,
                              struct str *out, struct err *e);
/* Appends what the chat template writes after the text of an answer: the end of that turn, the
 * messages, and the beginning of the next answer. Refuses a template that writes an earlier turn
 * otherwise than it was sampled (TARE_E_CONFIG). row: its variables of the template; NULL: none. */
tare_status prompts_after_answer(const struct prompts *p, const struct row *row, struct prompt_turn turn, struct str *out,
                                 struct err *e);
/* Returns the syntax in which the chat template writes a tool call (episodes/calls.h), CALLS_NONE for
 * a template that writes none in a known syntax, and for plain prompts. */
tare_status prompts_call_syntax(const struct prompts *p, enum call_syntax *out, struct err *e);
/* Returns true if the prompt of an answer ends within a thought (chat_opens_thought). */
bool prompts_open_thought(const struct prompts *p);
bool prompts_are_chat(const struct prompts *p);

struct prompt_limits {
    /* tokens: longest allowed prompt; context and rollout.max_prompt_tokens are for the message */
    int64_t tokens, context, most;
    /* a prompt's ids must be below the model's vocabulary size; 0: any */
    int64_t vocab;
    bool warns; /* warn about a template that makes all prompts equal */
};
/* Fails with TARE_E_RANGE unless every prompt of d fits. hash (may be NULL): updated with all ids
 * and answers. */
tare_status prompts_check(const struct prompts *p, const struct dataset *d, const struct prompt_limits *limits, uint64_t *hash,
                          struct err *e);

#endif
