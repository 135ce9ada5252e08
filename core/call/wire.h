/* Messages between the engine and a worker process: an 8-byte length, then fields in an agreed
 * order. Both sides are the same executable, so numbers are sent in their memory representation. */
#ifndef TARE_CORE_CALL_WIRE_H
#define TARE_CORE_CALL_WIRE_H

#include "base/str.h"

#include <stdbool.h>

enum { WIRE_OPEN = 1, WIRE_VERIFY = 2 };

struct wire { /* a message being read */
    const char *data;
    int64_t at, size;
    bool bad; /* read past the end */
};

void wire_start(struct str *m);
tare_status wire_put_int(struct str *m, int64_t x, struct err *e);
tare_status wire_put_double(struct str *m, double x, struct err *e);
tare_status wire_put_text(struct str *m, tare_text t, struct err *e);
int64_t wire_int(struct wire *w);
double wire_double(struct wire *w);
tare_text wire_text(struct wire *w); /* a view, not NUL-terminated */

enum wire_result { WIRE_OK, WIRE_CLOSED, WIRE_LATE };
/* Sends m, preceded by its length. */
enum wire_result wire_send(int fd, const struct str *m);
/* Receives one message into m. deadline_ns: CLOCK_MONOTONIC; 0: no deadline. */
enum wire_result wire_receive(int fd, struct str *m, int64_t deadline_ns);

#endif
