/* Messages through MPI. The only file that includes mpi.h; built as libtare_mpi.so. */
#include "dist/transport.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 30 }; /* bytes of a message: MPI counts in int */

struct slot {
    MPI_Request *requests;
    int n, capacity;
};

static struct slot slots[TRANSPORT_SLOTS];
static MPI_Comm world;

static int set_error(struct transport *t, const char *what, int code)
{
    char text[MPI_MAX_ERROR_STRING] = "?";
    int n = 0;
    MPI_Error_string(code, text, &n);
    snprintf(t->error, sizeof t->error, "%s: %.*s", what, n < 200 ? n : 200, text);
    return 1;
}

static void mpi_describe(struct transport *t)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int n = 0;
    MPI_Get_library_version(version, &n); /* allowed before MPI_Init */
    snprintf(t->about, sizeof t->about, "%.*s", (int)strcspn(version, ",\n"), version);
}

static int mpi_start(struct transport *t)
{
    int already = 0, provided = 0, code;
    MPI_Initialized(&already);
    if (already) {
        snprintf(t->error, sizeof t->error, "MPI was started before");
        return 1;
    }
    setenv("OMPI_MCA_opal_signal", "", 0); /* the watch reports crashes, not Open MPI's handler */
    /* Open MPI 5 ends a rank when the socket of another one closes. It waits for these seconds, so
     * that the watch can name the dead rank first. */
    setenv("OMPI_MCA_opal_abort_delay", "5", 0);
    if ((code = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided))) return set_error(t, "MPI_Init_thread", code);
    if (provided < MPI_THREAD_SERIALIZED) {
        snprintf(t->error, sizeof t->error, "this MPI was built without support for threads");
        return 1;
    }
    if ((code = MPI_Comm_dup(MPI_COMM_WORLD, &world))) return set_error(t, "MPI_Comm_dup", code);
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    MPI_Comm_rank(world, &t->rank);
    MPI_Comm_size(world, &t->size);
    return 0;
}

static int add_request(struct transport *t, struct slot *s, MPI_Request **out)
{
    if (s->n == s->capacity) {
        const int capacity = s->capacity ? 2 * s->capacity : 64;
        MPI_Request *grown = realloc(s->requests, (size_t)capacity * sizeof *grown);
        if (!grown) {
            snprintf(t->error, sizeof t->error, "no memory for %d messages", capacity);
            return 1;
        }
        s->requests = grown;
        s->capacity = capacity;
    }
    *out = &s->requests[s->n++];
    return 0;
}

static int mpi_post(struct transport *t, int slot, const struct transport_message *m)
{
    char *at = m->data;
    int64_t n = m->n;
    do {
        const int part = n < MOST ? (int)n : MOST;
        MPI_Request *request;
        if (add_request(t, &slots[slot], &request)) return 1;
        const int code = m->send ? MPI_Isend(at, part, MPI_BYTE, m->peer, m->tag, world, request)
                                 : MPI_Irecv(at, part, MPI_BYTE, m->peer, m->tag, world, request);
        if (code) {
            slots[slot].n--;
            return set_error(t, m->send ? "MPI_Isend" : "MPI_Irecv", code);
        }
        at += part;
        n -= part;
    } while (n > 0);
    return 0;
}

static int mpi_poll(struct transport *t, int slot, bool *done)
{
    struct slot *s = &slots[slot];
    int all = 1;
    if (s->n) {
        const int code = MPI_Testall(s->n, s->requests, &all, MPI_STATUSES_IGNORE);
        if (code) return set_error(t, "MPI_Testall", code);
    }
    if (all) s->n = 0;
    *done = all;
    return 0;
}

static int mpi_finish(struct transport *t)
{
    int code = MPI_Comm_free(&world);
    if (!code) code = MPI_Finalize();
    for (int i = 0; i < TRANSPORT_SLOTS; i++) {
        free(slots[i].requests);
        slots[i] = (struct slot){0};
    }
    return code ? set_error(t, "MPI_Finalize", code) : 0;
}

__attribute__((visibility("default"))) struct transport tare_transport = {
    .abi = TRANSPORT_ABI,
    .describe = mpi_describe,
    .start = mpi_start,
    .post = mpi_post,
    .poll = mpi_poll,
    .finish = mpi_finish,
};
