/* Finding a shared object that belongs to the program: beside it, or in ../lib/tare. */
#ifndef TARE_CORE_LIBRARY_H
#define TARE_CORE_LIBRARY_H

#include <stddef.h>

/* The symbol, or NULL with the reason in why. The object stays loaded. */
void *library_symbol(const char *file, const char *symbol, char *why, size_t room);

#endif
