/* A libtare_nccl.so for tests (TARE_NCCL): its ranks are threads of one process, and its memory is
 * that of test_comm_gpu.c, whose pointers are off by FAR. Transfers complete only in `done`, and
 * until then `out` holds poison. NCCL_DOUBLE makes it fail:
 *
 *   late           a transfer needs many calls of `done`
 *   fail_prepare   rank 1 cannot prepare; opening afterwards aborts the process
 *   fail_open      rank 1 cannot open
 *   wrong          one byte of a large all_to_all is wrong on the last rank
 *   hang_open, hang_done, hang_call   open never returns, done never says yes, all_to_all never
 *                  returns */
#include "dist/gpu_collectives.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FAR = 1 << 30, RANKS = 16, RING = 64 };

static struct {
    atomic_int opened, prepare_failed;
    atomic_llong posted[RING], copied[RING];
    const void *in[RING][RANKS];
} board;

static _Thread_local struct {
    int rank, size;
    int64_t n;
    struct {
        int64_t turn, bytes, polls;
        void *out;
        bool exchange, copied;
    } slots[GPU_SLOTS];
} mine;

static bool fault(const char *name)
{
    const char *wanted = getenv("NCCL_DOUBLE");
    return wanted && !strcmp(wanted, name);
}

static void hang(const char *name)
{
    while (fault(name)) pause();
}

static char *host_of(const void *p)
{
    return (char *)((uintptr_t)p - FAR);
}

static void describe(struct gpu_collectives *g)
{
    snprintf(g->about, sizeof g->about, "the tests' double");
}

static int make_id(struct gpu_collectives *g, char id[GPU_ID_BYTES])
{
    (void)g;
    memset(&board, 0, sizeof board);
    memset(id, 7, GPU_ID_BYTES);
    return 0;
}

static int prepare(struct gpu_collectives *g, int rank, int size, void *compute)
{
    (void)compute;
    memset(&mine, 0, sizeof mine);
    mine.rank = rank;
    mine.size = size;
    if (rank != 1 || !fault("fail_prepare")) return 0;
    board.prepare_failed = 1;
    snprintf(g->error, sizeof g->error, "cudaEventCreate: out of memory");
    return 1;
}

static int open_double(struct gpu_collectives *g, const char id[GPU_ID_BYTES])
{
    if (id[0] != 7 || board.prepare_failed) abort();
    hang("hang_open");
    board.opened++;
    if (mine.rank != 1 || !fault("fail_open")) return 0;
    snprintf(g->error, sizeof g->error, "ncclCommInitRank: unhandled cuda error");
    return 1;
}

static int post(int slot, const void *in, int64_t bytes, void *out, bool exchange)
{
    const int64_t turn = mine.n++;
    mine.slots[slot].turn = turn;
    mine.slots[slot].bytes = bytes;
    mine.slots[slot].out = out;
    mine.slots[slot].exchange = exchange;
    mine.slots[slot].copied = false;
    mine.slots[slot].polls = 0;
    for (int r = 0; r < mine.size; r++)
        if (exchange || (const char *)out + r * bytes != in) memset(host_of((char *)out + r * bytes), 0xbd, (size_t)bytes);
    board.in[turn % RING][mine.rank] = in;
    board.posted[turn % RING]++;
    return 0;
}

static int all_gather(struct gpu_collectives *g, int slot, const void *in, int64_t bytes, void *out)
{
    (void)g;
    return post(slot, in, bytes, out, false);
}

static int all_to_all(struct gpu_collectives *g, int slot, const void *in, int64_t bytes, void *out)
{
    (void)g;
    hang("hang_call");
    return post(slot, in, bytes, out, true);
}

static void copy_slot(int slot)
{
    const int64_t bytes = mine.slots[slot].bytes, turn = mine.slots[slot].turn;
    for (int r = 0; r < mine.size; r++) {
        const char *in = host_of((const char *)board.in[turn % RING][r] + (mine.slots[slot].exchange ? mine.rank * bytes : 0));
        char *out = host_of((char *)mine.slots[slot].out + r * bytes);
        if (in != out) memcpy(out, in, (size_t)bytes);
    }
    if (fault("wrong") && mine.slots[slot].exchange && bytes > 1 << 20 && mine.rank == mine.size - 1)
        host_of(mine.slots[slot].out)[1234] ^= 1;
    mine.slots[slot].copied = true;
    board.copied[turn % RING]++;
}

static int done(struct gpu_collectives *g, int slot, bool *ended)
{
    (void)g;
    const int64_t turn = mine.slots[slot].turn, all = mine.size * (turn / RING + 1);
    *ended = false;
    if (fault("hang_done") || (fault("late") && mine.slots[slot].polls++ < 20)) return 0;
    if (board.posted[turn % RING] < all) return 0;
    if (!mine.slots[slot].copied) copy_slot(slot);
    *ended = board.copied[turn % RING] >= all;
    return 0;
}

static int close_double(struct gpu_collectives *g, bool regular)
{
    (void)g, (void)regular;
    return 0;
}

__attribute__((visibility("default"))) struct gpu_collectives tare_gpu_collectives = {.abi = GPU_COLLECTIVES_ABI,
                                                                                      .describe = describe,
                                                                                      .make_id = make_id,
                                                                                      .prepare = prepare,
                                                                                      .open = open_double,
                                                                                      .all_gather = all_gather,
                                                                                      .all_to_all = all_to_all,
                                                                                      .done = done,
                                                                                      .close = close_double};
