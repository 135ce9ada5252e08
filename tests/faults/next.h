/* For preloaded libraries: the C library's function that a function of the same name replaces. */
#ifndef TARE_TESTS_NEXT_H
#define TARE_TESTS_NEXT_H

#include <dlfcn.h>
#include <stdatomic.h>

#define DECLARE(name) static void *_Atomic next_##name
#define NEXT(name) ((__typeof__(&name))next(&next_##name, #name))

static void *next(void *_Atomic *slot, const char *name)
{
    void *f = atomic_load(slot);
    if (!f) atomic_store(slot, f = dlsym(RTLD_NEXT, name));
    return f;
}

#endif
