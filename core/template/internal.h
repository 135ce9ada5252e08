/* Syntax tree, values and built-in functions of the template language. Internal to
 * core/template. */
#ifndef TARE_CORE_TEMPLATE_INTERNAL_H
#define TARE_CORE_TEMPLATE_INTERNAL_H

#include "base/arena.h"
#include "template/template.h"

#include <stdbool.h>

/* ---------------------------------------------------------------- values; memory in the arena of
 * one rendering */

/* V_METHOD: the value of d['items'] in Python if d has no such entry, and of x.upper without a
 * call. It is true and defined; every other use is an error. */
enum value_type { V_UNDEFINED, V_NONE, V_BOOL, V_INT, V_FLOAT, V_STRING, V_LIST, V_DICT, V_METHOD, V_FUNCTION, V_MACRO };

struct value {
    enum value_type type;
    union {
        int64_t i; /* also the value of a bool */
        double f;
        tare_text s; /* the text; the name of an undefined value or a method, for messages */
        struct list *list;
        struct dict *dict;
        const struct builtin *function; /* range without a call */
        const struct node *macro;       /* S_MACRO */
    };
};

struct list {
    struct value *items;
    int64_t n;
    bool tuple; /* a Python tuple: printed, compared and concatenated separately from lists */
    bool group; /* a tuple of groupby, with the attributes grouper and list */
};

struct dict { /* in insertion order */
    struct dict_entry {
        tare_text key;
        struct value value;
    } * entries;
    int64_t n, capacity;
    bool namespace, loop; /* not a plain dict of Python */
    /* of a namespace: an object of cycler() or joiner() */
    enum { OBJECT_NONE, OBJECT_CYCLER, OBJECT_JOINER } object;
    struct value *changed; /* of loop: the last arguments of loop.changed() */
};

/* ---------------------------------------------------------------- tokens */

enum token_kind { T_TEXT, T_OUT, T_OUT_END, T_TAG, T_TAG_END, T_NAME, T_STRING, T_INT, T_FLOAT, T_OP, T_END };

struct token {
    enum token_kind kind;
    int line;
    tare_text text;
    int64_t i;
    double f;
};

struct tokens {
    struct token *items;
    int64_t n, capacity;
};

/* Converts source to tokens. Their strings are in the arena. */
tare_status template_lex(const char *source, int64_t n, const char *where, struct arena *arena, struct tokens *out, struct err *e);

/* ---------------------------------------------------------------- tree; memory in the template's
 * arena */

enum node_kind {
    S_TEXT,
    S_OUT,
    S_IF,
    S_FOR,
    S_SET,
    S_SET_BLOCK,
    S_BREAK,
    S_CONTINUE,
    S_WITH,
    S_FILTER,
    S_MACRO,
    E_CONST,
    E_CAPTURED, /* the text of a block that filters are applied to */
    E_NAME,
    E_LIST,
    E_DICT,
    E_ATTRIBUTE,
    E_ITEM,
    E_SLICE,
    E_FUNCTION,
    E_METHOD,
    E_FILTER,
    E_TEST,
    E_NOT,
    E_NEGATE,
    E_AND,
    E_OR,
    E_BINARY,
    E_COMPARE,
    E_COND
};

enum operation {
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_FLOORDIV,
    OP_MOD,
    OP_POW,
    OP_CONCAT,
    OP_EQ,
    OP_NE,
    OP_LT,
    OP_LE,
    OP_GT,
    OP_GE,
    OP_IN,
    OP_NOT_IN
};

struct node {
    enum node_kind kind;
    int line;
    enum operation op;
    tare_text name, name2; /* variable, attribute; attribute of a namespace */
    /* assigned: E_NAME, or E_LIST of targets; linked by next in S_WITH; in S_MACRO the parameters,
     * of which the last have defaults in args */
    struct node *target;
    struct value constant;
    struct node *a, *b, *c;        /* operands */
    struct node *body, *otherwise; /* statements, linked by next */
    /* args are linked by next; name2 of a keyword argument is its name */
    struct node *args, *next;
    const struct builtin *builtin;
    bool tuple; /* E_LIST is a tuple */
};

struct template
{
    struct arena arena;
    const char *where;
    struct node *body;
    int64_t now; /* time of strftime_now */
};

/* ---------------------------------------------------------------- rendering */

enum { MAX_ARGS = 8, MAX_NESTING = 100, MAX_FRAMES = 256 };

struct render {
    const struct template *t;
    struct arena arena;
    struct str *out;
    struct err *e;
    struct scope {
        struct dict names[MAX_FRAMES]; /* innermost last */
        int n;
        int base; /* a macro sees the frames from here on, and the first */
    } scope;
    struct value captured; /* of E_CAPTURED */
    int64_t work;          /* steps so far; long strings count as several */
    int64_t begin;         /* size of out before rendering */
    int depth;
};

struct call { /* a call of a function, method, filter or test */
    struct render *r;
    int line;
    struct value self;           /* the receiver of methods, filters and tests */
    struct value *arg[MAX_ARGS]; /* in the order of the builtin's parameters; NULL: omitted */
    struct value rest[MAX_ARGS]; /* storage */
    struct dict *named;          /* arguments of functions that accept any keyword */
};

typedef tare_status (*builtin_call)(struct call *c, struct value *out);

struct builtin {
    const char *name;
    builtin_call call;
    const char *params; /* names separated by commas; "*": any keyword; "": none */
    int required;
};

const struct builtin *template_find_function(tare_text name);
const struct builtin *template_find_method(tare_text name);
const struct builtin *template_find_filter(tare_text name);
const struct builtin *template_find_string_filter(tare_text name); /* strings.c */
/* The members of self at a path such as "function.name". */
tare_status template_map_attribute(struct call *c, struct value path, struct value *out);
const struct builtin *template_find_list_filter(tare_text name);   /* sequences.c */
const struct builtin *template_find_format_filter(tare_text name); /* format.c */
const struct builtin *template_find_text_method(tare_text name);   /* format.c */
const struct builtin *template_find_object_method(tare_text name); /* builtins.c */
bool template_method_of_text(const struct builtin *b);
bool template_is_dict_method(tare_text name);
bool template_is_string_method(tare_text name); /* string methods of Python, supported or not */
bool template_is_list_method(tare_text name, bool tuple);
/* dict methods that do not modify the dict; the sandbox leaves the others undefined */
bool template_is_reading_method(tare_text name);
const struct builtin *template_find_test(tare_text name);

/* Fails with file:line. */
tare_status render_fail(struct render *r, int line, const char *format, ...) ERR_PRINTF(3, 4);
tare_status render_spend(struct render *r, int line, int64_t work);
tare_status render_take(struct render *r, int line, int64_t n, void **out);
/* Returns the index of a parameter, or -1. */
int template_param_index(const struct builtin *b, tare_text key);
tare_status template_call_joiner(struct call *c, struct value *out); /* self: the joiner */
tare_status template_call_builtin(struct call *c, const struct builtin *b, struct value *out);

/* value.c */
bool value_truthy(struct value v);
tare_status value_equal(struct render *r, int line, struct value a, struct value b, bool *out);
const char *value_type_name(struct value v);
bool value_text_is(tare_text t, const char *s);
struct value value_string(const char *data, int64_t n);
struct value value_bool(bool b);
struct value value_int(int64_t i);
tare_status value_new_list(struct render *r, int line, int64_t n, struct value *out);
tare_status value_new_dict(struct render *r, int line, struct value *out);
struct value *value_dict_find(const struct dict *d, tare_text key);
tare_status value_dict_put(struct render *r, int line, struct dict *d, tare_text key, struct value v);
tare_status value_from_json(struct render *r, const json_t *j, int depth, struct value *out);
/* Returns the list of items, keys or characters that iteration yields. */
tare_status value_iterate(struct render *r, int line, struct value v, struct list **out);
/* false for a namespace and the variable loop */
bool value_is_plain_dict(struct value v);
/* error for an unsupported use of a V_METHOD */
tare_status template_fail_method(struct render *r, int line, tare_text name);
tare_status value_get_attribute(struct render *r, int line, struct value v, tare_text name, struct value *out);
tare_status value_get_item(struct render *r, int line, struct value v, struct value key, struct value *out);
tare_status value_get_slice(struct render *r, int line, struct value v, const struct value bound[3], struct value *out);
tare_status value_binary(struct render *r, int line, enum operation op, struct value a, struct value b, struct value *out);
int64_t value_count_chars(tare_text t);
bool value_is_python_space(int32_t c);

/* case.c: changes the case of the call's self. CASE_WORDS: the filter title, whose words begin
 * after white space and -({[<; CASE_TITLE: the method. */
enum text_case { CASE_LOWER, CASE_UPPER, CASE_TITLE, CASE_CAPITAL, CASE_WORDS };
/* str.islower() and str.isupper() */
tare_status template_has_case(struct call *c, enum text_case how, struct value *out);
tare_status template_change_case(struct call *c, enum text_case how, struct value *out);

/* print.c */
/* The arguments of json.dumps; indent.data NULL: on one line. */
struct json_style {
    bool ascii, sorted;
    tare_text indent, item, key; /* item, key: separators */
};
/* str() and repr() of Python, json.dumps. */
tare_status print_text(struct render *r, int line, struct value v, struct str *out);
tare_status print_json(struct render *r, int line, struct value v, const struct json_style *style, struct str *out);
/* Returns a string unchanged, and str() of any other value. */
tare_status template_as_text(struct render *r, int line, struct value v, tare_text *out);
/* text % args of Python: args is a tuple, a dict, or a single value. */
tare_status template_percent(struct render *r, int line, tare_text text, struct value args, struct value *out);
/* copies the text into the arena */
tare_status template_keep_text(struct render *r, int line, const struct str *text, struct value *out);

#endif
