/* Runs a launch: blocks one after another, a block's threads as fibers. A fiber runs until it waits
 * at a barrier or a warp operation, or ends. */
#include "internal.h"

#include "fault.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

enum { THREADS_MOST = 1024, WARP = 32, STACK = 256 << 10, EXCHANGE = 64, SHARED_MOST = 227 << 10 };
enum fiber_state { READY, AT_BARRIER, IN_WARP, ASLEEP, ENDED };

struct fiber {
#if defined(__x86_64__)
    void *sp;
#else
    ucontext_t context;
#endif
    unsigned char *stack;
    enum fiber_state state;
    struct uint3 index;
    uint32_t exchanges;
    bool early;       /* has not yet waited for the preceding launch */
    const char *file; /* of the barrier at which it waits */
    int line;
    const void *sleeps_on;
};

struct warp {
    int live, arrived;
    uint32_t syncs, present[2];
    int bytes[2];
    unsigned char slot[2][WARP][EXCHANGE];
};

struct shim_launch_state shim_now;
int shim_corners;
void (*shim_launched)(const char *kernel, int64_t blocks, int64_t threads, int64_t shared);
bool shim_follows;
static bool follows; /* this launch may begin early */
struct shim_block_view shim_view;
int64_t shim_found, shim_blocks;
char shim_first[400];
static char first_of_launch[sizeof shim_first];
static int64_t found_before; /* findings before this launch */

static struct fiber fibers[THREADS_MOST], *self, scheduler;
static struct warp warps[THREADS_MOST / WARP];
static int n_fibers, live, arrived;
static int64_t serial;
static uint32_t schedule_seed;
static void (*thread_function)(void *);
static void *thread_args;
alignas(1024) static unsigned char dynamic_shared[SHARED_MOST];

/* ---- findings */

void shim_report(const char *format, ...)
{
    va_list args;
    char text[sizeof shim_first];
    va_start(args, format);
    int n = snprintf(text, sizeof text, "%s, block (%u,%u,%u): ", shim_view.kernel ? shim_view.kernel : "no kernel",
                     shim_now.block.x, shim_now.block.y, shim_now.block.z);
    if (n < 0 || n >= (int)sizeof text) n = 0;
    vsnprintf(text + n, sizeof text - (size_t)n, format, args);
    va_end(args);
    if (!shim_found) memcpy(shim_first, text, sizeof text);
    if (shim_found++ == found_before) memcpy(first_of_launch, text, sizeof text);
}

void shim_fail(const char *what)
{
    shim_report("thread %d: %s", shim_view.thread, what);
}

void shim_forget(void)
{
    shim_found = 0;
    shim_first[0] = 0;
}

void shim_schedule(uint32_t seed)
{
    schedule_seed = seed;
}

/* ---- fibers */

#if defined(__x86_64__)
extern "C" void shim_switch(void **save, void *load);
/* Callee-saved registers are stored on the stack that is left. */
__asm__(".text\n"
        ".globl shim_switch\n"
        ".type shim_switch, @function\n"
        "shim_switch:\n"
        "    push %rbp\n    push %rbx\n    push %r12\n    push %r13\n    push %r14\n    push %r15\n"
        "    mov %rsp, (%rdi)\n"
        "    mov %rsi, %rsp\n"
        "    pop %r15\n    pop %r14\n    pop %r13\n    pop %r12\n    pop %rbx\n    pop %rbp\n"
        "    ret\n"
        ".size shim_switch, .-shim_switch\n");
#endif

static void leave(void) /* switches to the scheduler */
{
    struct fiber *me = self;
    shim_view.running = false;
#if defined(__x86_64__)
    shim_switch(&me->sp, scheduler.sp);
#else
    swapcontext(&me->context, &scheduler.context);
#endif
}

static void enter(struct fiber *f)
{
    self = f;
    shim_now.thread = f->index;
    shim_view.thread = (int)(f - fibers);
    shim_view.warp_syncs = warps[shim_view.thread / WARP].syncs;
    shim_view.stack_begin = (uintptr_t)f->stack;
    shim_view.stack_end = (uintptr_t)f->stack + STACK;
    shim_view.early = f->early;
    shim_view.running = true;
#if defined(__x86_64__)
    shim_switch(&scheduler.sp, f->sp);
#else
    swapcontext(&scheduler.context, &f->context);
#endif
}

static void release_barrier(void);
static void release_warp(struct warp *w);

static void fiber_main(void)
{
    thread_function(thread_args);
    if (self->early) shim_report("thread %d ends and has not waited for the preceding launch", (int)(self - fibers));
    self->state = ENDED;
    struct warp *w = &warps[(self - fibers) / WARP];
    live--;
    w->live--;
    if (live && arrived == live) release_barrier();
    if (w->live && w->arrived == w->live) release_warp(w);
    for (;;) leave();
}

static bool fiber_start(struct fiber *f)
{
    if (!f->stack) {
        void *p = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED) return false;
        f->stack = (unsigned char *)p;
    }
    f->state = READY;
    f->exchanges = 0;
    f->early = follows;
#if defined(__x86_64__)
    void **top = (void **)(void *)(f->stack + STACK - 64);
    *--top = NULL;               /* return address of fiber_main, which does not return */
    *--top = (void *)fiber_main; /* destination of the switch */
    top -= 6;
    memset(top, 0, 6 * sizeof *top);
    f->sp = top;
#else
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = STACK;
    f->context.uc_link = NULL;
    makecontext(&f->context, fiber_main, 0);
#endif
    return true;
}

void shim_wait(void)
{
    self->early = shim_view.early = false;
}

/* ---- barriers and warps */

static void release_barrier(void)
{
    const struct fiber *first = NULL;
    arrived = 0;
    for (int i = 0; i < n_fibers; i++) {
        struct fiber *f = &fibers[i];
        if (f->state != AT_BARRIER) continue;
        if (!first) first = f;
        if (f->line != first->line || strcmp(f->file, first->file))
            shim_report("threads %d and %d wait at different barriers, lines %d and %d", (int)(first - fibers), i, first->line,
                        f->line);
        f->state = READY;
    }
    watch_barrier();
}

void shim_barrier(const char *file, int line)
{
    self->file = file;
    self->line = line;
    self->state = AT_BARRIER;
    if (++arrived == live)
        release_barrier();
    else
        leave();
}

void shim_sleep(const void *on)
{
    self->sleeps_on = on;
    self->state = ASLEEP;
    leave();
}

void shim_wake(const void *on)
{
    for (int i = 0; i < n_fibers; i++)
        if (fibers[i].state == ASLEEP && fibers[i].sleeps_on == on) fibers[i].state = READY;
}

static void release_warp(struct warp *w)
{
    const int from = (int)(w - warps) * WARP;
    w->arrived = 0;
    for (int i = from; i < from + WARP && i < n_fibers; i++)
        if (fibers[i].state == IN_WARP) fibers[i].state = READY;
}

int shim_thread(void)
{
    return shim_view.thread;
}

int shim_lane(void)
{
    return shim_view.thread % WARP;
}

int64_t shim_block_serial(void)
{
    return serial;
}

void *shim_dynamic_shared(void)
{
    return dynamic_shared;
}

/* All live lanes call this. Two sets of slots alternate, since the next exchange cannot end before
 * all lanes have read this one. Returns the lanes that took part. */
static uint32_t exchange(const void *mine, int bytes, const unsigned char **slots)
{
    struct fiber *me = self;
    const int lane = shim_lane(), turn = (int)(me->exchanges++ & 1);
    struct warp *w = &warps[shim_view.thread / WARP];
    if (!w->arrived) {
        w->present[turn] = 0;
        w->bytes[turn] = bytes;
    } else if (w->bytes[turn] != bytes) {
        shim_report("the lanes of a warp are at different warp operations");
    }
    memcpy(w->slot[turn][lane], mine, (size_t)bytes);
    w->present[turn] |= 1u << lane;
    me->state = IN_WARP;
    if (++w->arrived == w->live)
        release_warp(w);
    else
        leave();
    *slots = w->slot[turn][0];
    return w->present[turn];
}

void shim_warp_exchange(const void *mine, int bytes, void *all)
{
    const unsigned char *slots;
    exchange(mine, bytes, &slots);
    for (int i = 0; i < WARP; i++) memcpy((unsigned char *)all + i * bytes, slots + i * EXCHANGE, (size_t)bytes);
}

unsigned shim_ballot(int predicate)
{
    const unsigned char *slots;
    const uint32_t present = exchange(&predicate, (int)sizeof predicate, &slots);
    unsigned all = 0;
    for (int i = 0; i < WARP; i++) {
        int one;
        memcpy(&one, slots + i * EXCHANGE, sizeof one);
        if (present >> i & 1 && one) all |= 1u << i;
    }
    return all;
}

void shim_warp_sync(void)
{
    const unsigned char *slots;
    const char nothing = 0;
    struct warp *w = &warps[shim_view.thread / WARP];
    const uint32_t before = w->syncs;
    exchange(&nothing, 1, &slots);
    if (w->syncs == before) w->syncs++; /* only the first lane that continues */
    shim_view.warp_syncs = w->syncs;
}

/* ---- blocks and launches */

static void order_of(int *order)
{
    uint32_t x = schedule_seed;
    for (int i = 0; i < n_fibers; i++) order[i] = i;
    for (int i = n_fibers - 1; x && i > 0; i--) {
        x = x * 1664525u + 1013904223u;
        const int j = (int)((x >> 8) % (uint32_t)(i + 1)), t = order[i];
        order[i] = order[j], order[j] = t;
    }
}

#if defined(__SANITIZE_ADDRESS__)
extern "C" void __asan_unpoison_memory_region(const volatile void *p, size_t bytes);
#endif

/* For a thread that never continues: the address sanitizer still has its frames, and another thread
 * will use the stack next. */
static void forget_frames(const struct fiber *f)
{
#if defined(__SANITIZE_ADDRESS__)
    __asan_unpoison_memory_region(f->stack, STACK);
#else
    (void)f;
#endif
}

static void run_block(void)
{
    static int order[THREADS_MOST];
    memset(dynamic_shared, 0xff, shim_view.shared_end - shim_view.shared_begin);
    serial++;
    live = n_fibers, arrived = 0;
    for (int i = 0; i < n_fibers; i++) {
        const unsigned x = shim_now.block_dim.x, y = shim_now.block_dim.y;
        fibers[i].index = {(unsigned)i % x, (unsigned)i / x % y, (unsigned)i / x / y};
        if (i % WARP == 0) {
            struct warp *w = &warps[i / WARP];
            memset(w, 0xff, sizeof *w);
            w->live = n_fibers - i < WARP ? n_fibers - i : WARP;
            w->arrived = 0, w->syncs = 0;
        }
        if (!fiber_start(&fibers[i])) {
            shim_report("no memory for the stack of a thread");
            return;
        }
    }
    order_of(order);
    watch_block();
    while (live) {
        bool progress = false;
        for (int i = 0; i < n_fibers; i++) {
            struct fiber *f = &fibers[order[i]];
            if (f->state != READY) continue;
            enter(f);
            progress = true;
        }
        if (progress || shim_async_step()) continue;
        int waits[ENDED + 1] = {0}; /* abandoned in place: nothing of theirs is freed */
        for (int i = 0; i < n_fibers; i++) {
            waits[fibers[i].state]++;
            forget_frames(&fibers[i]);
        }
        shim_report("%d threads wait at a barrier, %d in a warp operation and %d for the end of a phase, for each other forever",
                    waits[AT_BARRIER], waits[IN_WARP], waits[ASLEEP]);
        return;
    }
    shim_async_end();
}

/* Return the next block: all of them, or with shim_corners the first, the middle and the last
 * one. */
static unsigned next_block(unsigned at, unsigned n)
{
    if (!shim_corners || n < 4) return at + 1;
    return at == 0 ? n / 2 : at == n / 2 ? n - 1 : n;
}

void shim_run(const struct kctx *c, const char *kernel, struct dim3 grid, struct dim3 block, size_t shared, void (*thread)(void *),
              void *args, size_t args_bytes)
{
    if (shim_keep_launch({*c, kernel, grid, block, shared, args_bytes, thread, shim_follows}, args)) return;
    follows = shim_follows, shim_follows = false;
    const int64_t found = found_before = shim_found;
    shim_view.kernel = kernel;
    shim_now.grid_dim = grid;
    shim_now.block_dim = block;
    n_fibers = (int)(block.x * block.y * block.z);
    thread_function = thread;
    thread_args = args;
    shim_view.args_begin = (uintptr_t)args;
    shim_view.args_end = (uintptr_t)args + args_bytes;
    shim_view.shared_begin = (uintptr_t)dynamic_shared;
    shim_view.shared_end = (uintptr_t)dynamic_shared + shared;
    shim_view.shared_all_begin = (uintptr_t)dynamic_shared;
    shim_view.shared_all_end = (uintptr_t)dynamic_shared + sizeof dynamic_shared;
    if (!grid.x || !grid.y || !grid.z || grid.y > 65535 || grid.z > 65535 || n_fibers < 1 || n_fibers > THREADS_MOST ||
        shared > SHARED_MOST)
        shim_report("a launch of %u x %u x %u blocks of %d threads with %zu bytes", grid.x, grid.y, grid.z, n_fibers, shared);
    watch_launch(follows);
    for (unsigned z = 0; z < grid.z && shim_found == found; z = next_block(z, grid.z))
        for (unsigned y = 0; y < grid.y && shim_found == found; y = next_block(y, grid.y))
            for (unsigned x = 0; x < grid.x && shim_found == found; x = next_block(x, grid.x)) {
                shim_now.block = {x, y, z};
                run_block();
                shim_blocks++;
            }
    if (shim_found != found) kernel_fail(c, TARE_E_DEVICE, "%s", first_of_launch);
    shim_view.kernel = NULL;
}
