/* Connections. One thread of libmicrohttpd's runs all of them; a connection that has nothing to send is suspended until its job wakes it. */
#ifndef TARE_SERVE_HTTP_H
#define TARE_SERVE_HTTP_H

#include "serve/job.h"

/* Listens at options->host and options->port. TARE_E_CONFIG: the address cannot be had, or is not of this machine alone and no key is set.
 * where: "127.0.0.1:8000" */
enum { HTTP_WHERE = 300 };
tare_status http_open(struct server *s, char where[HTTP_WHERE], struct err *e);
/* No new connections from here on. Returns the socket, to be given to http_close. */
int http_quiet(struct server *s);
/* The batcher has ended. */
void http_close(struct server *s, int socket);

/* ---- what libmicrohttpd calls (http.c) */
enum MHD_Result http_request(void *server, struct MHD_Connection *connection, const char *url, const char *method,
                             const char *version, const char *data, size_t *n, void **exchange);
void http_completed(void *server, struct MHD_Connection *connection, void **exchange, enum MHD_RequestTerminationCode why);

#endif
