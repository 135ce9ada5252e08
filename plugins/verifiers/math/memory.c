#include "flint.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>

/* FLINT and GMP abort the process if an allocation fails, FLINT also at an arithmetic error. They
 * allocate through these functions, which return to the current verifier call instead. The memory
 * of the abandoned computation is leaked: some kilobytes. */
static _Thread_local jmp_buf *way_back
    /* with other TLS models the leak sanitizer crashes after the plugin is unloaded */
    __attribute__((tls_model("initial-exec")));

__attribute__((noreturn)) static void come_back(void)
{
    if (way_back) longjmp(*way_back, 1);
    abort(); /* outside of guarded() nothing allocates */
}

static void *or_come_back(void *p)
{
    if (!p) come_back();
    return p;
}

static void *take_memory(size_t n)
{
    return or_come_back(malloc(n ? n : 1));
}

static void *take_zeros(size_t n, size_t size)
{
    return or_come_back(calloc(n ? n : 1, size ? size : 1));
}

static void *resize_memory(void *p, size_t n)
{
    return or_come_back(realloc(p, n ? n : 1));
}

static void *gmp_resize(void *p, size_t was, size_t n)
{
    (void)was;
    return resize_memory(p, n);
}

static void gmp_give(void *p, size_t n)
{
    (void)n;
    free(p);
}

static void set_functions(void)
{
    __flint_set_memory_functions(take_memory, take_zeros, resize_memory, free);
    flint_set_abort(come_back);
    mp_set_memory_functions(take_memory, gmp_resize, gmp_give);
}

void memory_begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, set_functions);
}

bool guarded(void (*call)(void *arg), void *arg)
{
    jmp_buf here;
    volatile bool whole = false;
    way_back = &here;
    if (!setjmp(here)) {
        call(arg);
        whole = true;
    }
    way_back = NULL;
    return whole;
}
