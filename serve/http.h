/* Connections. One thread of libmicrohttpd runs all of them; a connection without data to send is
 * suspended until its job wakes it. */
#ifndef TARE_SERVE_HTTP_H
#define TARE_SERVE_HTTP_H

#include "serve/job.h"

/* Listens on options->host and options->port. TARE_E_CONFIG: the address is unavailable, or other
 * machines can reach it and no key is set. where: "127.0.0.1:8000". */
enum { HTTP_WHERE = 300 };
tare_status http_open(struct server *s, char where[HTTP_WHERE], struct err *e);
/* Accepts no more connections. Returns the socket for http_close. */
int http_quiet(struct server *s);
/* Called after the batcher has ended. */
void http_close(struct server *s, int socket);

/* ---- callbacks of libmicrohttpd (http.c) */
enum MHD_Result http_request(void *server, struct MHD_Connection *connection, const char *url, const char *method,
                             const char *version, const char *data, size_t *n, void **exchange);
void http_completed(void *server, struct MHD_Connection *connection, void **exchange, enum MHD_RequestTerminationCode why);

#endif
