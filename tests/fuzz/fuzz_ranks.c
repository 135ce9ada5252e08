/* libFuzzer target: messages that one rank reads from another. The first byte chooses:
 *   0  the rest is a packed batch; 1: the same with its length, the mark of its columns and its
 *      checksum corrected, so that the code after these checks is reached
 *   2  rank 0 of three agrees, compares facts and gathers sizes with ranks whose answers are the rest
 *   3  the rest comes over the connection that watches: a hello, and packets */
#define _GNU_SOURCE
#include "base/fs.h"
#include "batch/pack.h"
#include "batch/select.h"
#include "batch/table.h"
#include "bytes.h"
#include "dist/comm.h"
#include "dist/watch_net.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RANKS = 3, HEAD = 16, MOST_FACTS = 1 << 24 };

/* ---- a packed batch */

/* Reads every byte of an accepted batch. */
static void look_at(const struct batch *b)
{
    for (int c = 0; c < BATCH_N_COLUMNS; c++) {
        const struct batch_column *t = &BATCH_TABLE[c];
        const void *array = batch_array(b, c);
        const int64_t n = batch_count(b, t->axis);
        if (!array || t->kind == KIND_LOCAL) continue;
        for (int64_t i = 0; i < n && t->kind == KIND_TEXT; i++) {
            const tare_text text = ((const tare_text *)array)[i];
            (void)fs_hash(text.data ? text.data : "", text.size, 0);
        }
        for (int64_t i = 0; i < n && t->kind == KIND_STRING; i++) {
            const char *text = ((const char *const *)array)[i];
            if (text) (void)fs_hash(text, (int64_t)strlen(text), 0);
        }
        const int64_t entries = t->kind == KIND_BEGIN ? n + 1 : n * batch_width(b, c);
        if (t->kind != KIND_TEXT && t->kind != KIND_STRING) (void)fs_hash(array, entries * (int64_t)t->size, 0);
    }
}

static void unpack(struct bytes *in, int right)
{
    const size_t n = (size_t)(in->end - in->at) / 64 * 64;
    struct err e = {0};
    struct arena a;
    struct batch b, all;
    struct str empty = {0};
    unsigned char *bytes = aligned_alloc(64, n ? n : 64);
    if (!bytes) return;
    bytes_fill(in, bytes, n);
    if (right && n >= 64) { /* the mark of the columns, as in an empty pack */
        struct batch none = {0};
        if (batch_pack(&none, 0, &empty, &e)) abort();
        memcpy(bytes + 8, empty.data + 8, 8);
        memcpy(bytes + HEAD, &(int64_t){(int64_t)n}, 8);
        const uint64_t hash = fs_hash(bytes + 8, (int64_t)n - 8, 0);
        memcpy(bytes, &hash, 8);
        str_free(&empty);
    }
    arena_init(&a, "fuzz");
    if (!batch_unpack(bytes, (int64_t)n, &a, &b, &e)) {
        look_at(&b);
        struct batch parts[2] = {b, b};
        if (b.n_groups < 1000 && !batch_concat((struct batch_parts){parts, 2}, BATCH_ROLLOUT | BATCH_VERIFY, &a, &all, &e))
            look_at(&all);
    } else if (!*e.message) {
        abort();
    }
    arena_free(&a);
    free(bytes);
}

/* ---- agreement, facts, sizes */

static tare_status gather(struct comm *c, const void *in, int64_t n, void *out, const int64_t *sizes, struct err *e)
{
    struct bytes *from = c->self;
    char *to = out;
    int64_t all = 0;
    for (int r = 0; r < c->size; r++) {
        if (sizes[r] < 0) abort();
        all += sizes[r];
    }
    if (all > (int64_t)RANKS * MOST_FACTS) abort(); /* requested without a check */
    if (all > 1 << 20) FAIL(e, TARE_E_COMM, "too much");
    for (int r = 0; r < c->size; to += sizes[r++]) {
        if (r == c->rank && n) memcpy(to, in, (size_t)n);
        if (r == c->rank) continue;
        if (sizes[r] == sizeof(int64_t))
            memcpy(to, &(int64_t){bytes_number(from)}, sizeof(int64_t));
        else
            bytes_fill(from, to, (size_t)sizes[r]);
    }
    return TARE_OK;
}

static tare_status broadcast(struct comm *c, void *data, int64_t n, int root, struct err *e)
{
    (void)e;
    if (root < 0 || root >= c->size) abort();
    if (root != c->rank) bytes_fill(c->self, data, (size_t)n);
    return TARE_OK;
}

static void agree(struct bytes *in)
{
    struct comm c = {.size = RANKS, .self = in, .gather = gather, .broadcast = broadcast};
    const struct comm_fact facts[] = {{"seed", "1"}, {"data.train", "a"}, {"x", ""}};
    int64_t sizes[RANKS];
    struct err e = {0};
    const int mine = byte(in) & 1;
    if (mine) e = (struct err){.code = TARE_E_PLUGIN, .message = "mine"};
    tare_status status = comm_agree(&c, mine ? TARE_E_PLUGIN : TARE_OK, &e);
    if (status && (e.code != status || !memchr(e.message, 0, sizeof e.message))) abort();
    e = (struct err){0};
    status = comm_same(&c, "the configuration", facts, 3, &e);
    if (status && (!*e.message || !memchr(e.message, 0, sizeof e.message))) abort();
    if (comm_gather_sizes(&c, 7, sizes, &e)) return;
    for (int r = 0; r < RANKS; r++)
        if (sizes[r] < 0 || sizes[r] > (int64_t)1 << 44) abort();
}

/* ---- the connection that watches */

static void watch(struct bytes *in)
{
    int fd[2];
    struct connection c = {0};
    struct packet p;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd)) return;
    for (int i = byte(in) % 8; i > 0; i--) { /* packets with the mark that they need */
        bytes_fill(in, &p, sizeof p);
        p.magic = PACKET_MAGIC;
        if (send(fd[0], &p, sizeof p, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) break;
    }
    size_t n;
    const char *rest = bytes_take(in, 65536, &n);
    if (n && send(fd[0], rest, n, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) n = 0;
    close(fd[0]);
    c.fd = fd[1];
    while (watch_net_receive(&c) > 0) {
        const struct packet *q = &c.in;
        if (strlen(q->text) >= sizeof q->text || strlen(q->stage) >= sizeof q->stage || strlen(q->what) >= sizeof q->what ||
            strlen(q->host) >= sizeof q->host)
            abort();
    }
    close(fd[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size) return 0;
    struct bytes in = {data + 1, data + size};
    switch (data[0] % 4) {
    case 0:
    case 1:
        unpack(&in, data[0] & 1);
        break;
    case 2:
        agree(&in);
        break;
    default:
        watch(&in);
    }
    return 0;
}
