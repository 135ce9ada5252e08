/* A page of a mapped file that cannot be had any more: the file was cut short, or its disk is gone. Reading it is SIGBUS. */
#ifndef TARE_CORE_BASE_LOST_PAGE_H
#define TARE_CORE_BASE_LOST_PAGE_H

/* From now on such a page ends the process with exit status 1 and a message that names the file. For programs, not for libraries: the handler is the whole
 * process's. Any other cause of SIGBUS is left to the system. */
void lost_page_tell(void);

#endif
