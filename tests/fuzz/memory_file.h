/* For targets whose input is a file that is opened by name and mapped: a file in memory. A
 * mapping of it (--wrap=mmap in fuzz.cmake) ends at an unreadable page, so that a read beyond
 * the file is noticed, in libraries too; a real mapping is followed by zeros up to the next
 * page. */
#ifndef TARE_TESTS_MEMORY_FILE_H
#define TARE_TESTS_MEMORY_FILE_H

#include <stddef.h>

struct memory_file {
    int fd;
    char path[40];
};

struct memory_file memory_file(void); /* empty */
void memory_file_add(const struct memory_file *f, const void *data, size_t n);
void memory_file_close(struct memory_file *f);

#endif
