/* libmicrohttpd, loaded when `tare serve` starts, so that other verbs work without it. */
#ifndef TARE_SERVE_MHD_H
#define TARE_SERVE_MHD_H

#include "base/err.h"

#include <microhttpd.h>

#define MHD_CALLS(X)                                                                                                               \
    X(start_daemon)                                                                                                                \
    X(stop_daemon)                                                                                                                 \
    X(quiesce_daemon)                                                                                                              \
    X(get_daemon_info)                                                                                                             \
    X(create_response_from_buffer)                                                                                                 \
    X(create_response_from_callback)                                                                                               \
    X(destroy_response)                                                                                                            \
    X(add_response_header)                                                                                                         \
    X(queue_response)                                                                                                              \
    X(suspend_connection)                                                                                                          \
    X(resume_connection)                                                                                                           \
    X(lookup_connection_value)                                                                                                     \
    X(get_connection_info)

struct mhd {
#define MHD_FIELD(NAME) __typeof__(&MHD_##NAME) NAME;
    MHD_CALLS(MHD_FIELD)
#undef MHD_FIELD
};

/* TARE_E_UNSUPPORTED: the library is missing on this machine. */
tare_status mhd_open(const struct mhd **out, struct err *e);

#endif
