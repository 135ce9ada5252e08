/* A page of a mapped file that is no longer available, because the file was truncated or its disk
 * failed. Reading it raises SIGBUS. */
#ifndef TARE_CORE_BASE_LOST_PAGE_H
#define TARE_CORE_BASE_LOST_PAGE_H

/* Install a handler: reading a lost page ends the process with exit status 1 and a message that
 * names the file. For programs, not for libraries, since the handler is process-wide. Any other
 * SIGBUS keeps its default action. */
void lost_page_report(void);

#endif
