/* Ranks as processes under mpirun: mpirun starts this program too (argv[1] is "rank", argv[2] the
 * job). Checks the collectives against their definitions, and every way a rank can fail: the job
 * ends on all ranks in time, with one message, and leaves no process. */
#include "base/clock.h"
#include "base/log.h"
#include "base/signals.h"
#include "check.h"
#include "dist/comm_mpi.h"
#include "dist/ranks.h"
#include "folder.h"
#include "unit/dist/collectives.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the ranks */

static tare_status use_pending(struct comm *c, struct err *e)
{
    enum { N = 100000 };
    OWNED(mem_free_at) float *in = NULL, *out = NULL;
    TRY(mem_new((int64_t)COMM_PENDING * N * 4, (void **)&in, e));
    TRY(mem_new((int64_t)COMM_PENDING * c->size * N * 4, (void **)&out, e));
    for (int k = 0; k < COMM_PENDING; k++) {
        for (int64_t i = 0; i < N; i++) in[k * N + i] = value(c->rank + 50 * k, i);
        TRY(c->gather_begin(c, in + k * N, N * 4, out + (int64_t)k * c->size * N, e));
    }
    TRY(c->barrier(c, e)); /* others in between */
    for (int k = 0; k < COMM_PENDING; k++) TRY(c->gather_wait(c, e));
    for (int k = 0; k < COMM_PENDING; k++)
        for (int r = 0; r < c->size; r++)
            for (int64_t i = 0; i < N; i++)
                if (out[((int64_t)k * c->size + r) * N + i] != value(r + 50 * k, i))
                    FAIL(e, TARE_E_GENERIC, "pending gather %d has rank %d wrong", k, r);
    return TARE_OK;
}

static tare_status collectives(struct comm *c, struct err *e)
{
    TRY(use_all(c, NULL, e));
    TRY(use_all_to_all(c, 700001, e));
    TRY(use_all_gather(c, 300007, e));
    TRY(use_pending(c, e));
    TRY(use_exchanges(c, 100003, e));
    for (int i = 0; i < 500; i++) TRY(c->barrier(c, e));
    if (!c->rank) printf("all right on %d ranks\n", c->size);
    return TARE_OK;
}

static tare_status steps(struct comm *c, struct err *e)
{
    for (int64_t step = 1; step <= 4; step++) {
        TRY(comm_stage(c, "rollout", step, e));
        TRY(c->barrier(c, e));
        TRY(comm_stage(c, "update", step, e));
        TRY(use_all_to_all(c, 10000, e));
        usleep(100000);
        TRY(use_all_gather(c, 10000, e));
    }
    if (!c->rank) printf("four steps\n");
    return TARE_OK;
}

static tare_status crash(struct comm *c, struct err *e)
{
    TRY(comm_stage(c, "update", 7, e));
    TRY(c->barrier(c, e));
    if (c->rank == c->size - 1) raise(SIGSEGV);
    return c->barrier(c, e);
}

static tare_status all_wrong(struct comm *c, struct err *e)
{
    (void)c;
    FAIL(e, TARE_E_CONFIG, "x.ini:3: the same on all");
}

static void measure(struct comm *c, const char *what, double bytes, double began)
{
    if (!c->rank)
        printf("%-16s %8.2f ms %8.2f GB/s a rank\n", what, 1e3 * (clock_seconds() - began),
               bytes / 1e9 / (clock_seconds() - began));
}

/* Measures 64 MB a unit, as in a large model's layer, and the latency of the smallest message. By
 * hand: mpirun -n 2 test_ranks rank speed */
static tare_status speed(struct comm *c, struct err *e)
{
    const int64_t n = (16 << 20) / c->size;
    float *whole, *other, *piece;
    TRY(mem_new(c->size * n * 4, (void **)&whole, e));
    TRY(mem_new(c->size * n * 4, (void **)&other, e));
    TRY(mem_new(n * 4, (void **)&piece, e));
    for (int i = 0; i < 3; i++) {
        double began = clock_seconds();
        TRY(c->all_gather(c, piece, n * 4, whole, e));
        measure(c, "all_gather", (double)(c->size - 1) * (double)n * 4, began);
        began = clock_seconds();
        TRY(c->all_to_all(c, whole, n * 4, other, e));
        measure(c, "all_to_all", (double)(c->size - 1) * (double)n * 4, began);
    }
    const double began = clock_seconds();
    for (int i = 0; i < 1000; i++) TRY(c->barrier(c, e));
    measure(c, "1000 barriers", 0, began);
    mem_free(whole);
    mem_free(other);
    mem_free(piece);
    return TARE_OK;
}

static int run_rank(int argc, char **argv)
{
    const struct {
        const char *name;
        tare_status (*run)(struct comm *c, struct err *e);
    } jobs[] = {{"collectives", collectives}, {"steps", steps}, {"crash", crash}, {"all_wrong", all_wrong}, {"speed", speed}};
    const char *ranks = getenv("RANKS"), *patience = getenv("PATIENCE");
    struct err e = {0};
    bool done = false;
    tare_status status = TARE_OK;
    if (argc < 3) return 2;
    /* As tare does: when a rank has died, mpirun sends SIGTERM to the others, and one of them must
     * report it first. */
    signals_catch();
    status = ranks_start(&(struct ranks_options){.ranks = ranks ? atoi(ranks) : 0,
                                                 .where = "test",
                                                 .timeout_s = patience ? atof(patience) : 600,
                                                 .library = COMMUNICATOR_AUTO},
                         status, &done, &e);
    struct comm c = {0};
    if (!status && !done) status = comm_open(0, &c, &e);
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs && !status && !done; i++)
        if (!strcmp(argv[2], jobs[i].name)) status = jobs[i].run(&c, &e);
    return ranks_end(status, &e);
}

/* ---- the tests */

static char exe[4000];

struct outcome {
    int status;
    double seconds;
    char text[20000];
    int messages; /* lines printed by tare */
};

/* Runs a shell command; MARK in the environment lets left_behind find its processes. */
static void run(struct outcome *o, const char *format, ...)
{
    char line[8000], command[9000];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    snprintf(command, sizeof command, "export MARK=ranks_%d; { %s; } 2>&1", (int)getpid(), line);
    const double began = clock_seconds();
    FILE *f = popen(command, "r");
    assert_non_null(f);
    const size_t n = fread(o->text, 1, sizeof o->text - 1, f);
    o->text[n] = 0;
    const int how = pclose(f);
    o->status = WIFEXITED(how) ? WEXITSTATUS(how) : 128;
    o->seconds = clock_seconds() - began;
    o->messages = 0;
    for (const char *p = o->text; (p = strstr(p, "tare: ")); p++) o->messages++;
}

/* Counts processes with our mark; waits up to twenty seconds for them to end, because the machine
 * may be busy. */
static int left_behind(void)
{
    char command[300], text[100] = "0";
    snprintf(command, sizeof command, "grep -lzx MARK=ranks_%d /proc/[0-9]*/environ 2> /dev/null | wc -l", (int)getpid());
    for (int i = 0; i < 80; i++) {
        FILE *f = popen(command, "r");
        if (!f || !fgets(text, sizeof text, f)) return -1;
        pclose(f);
        if (atoi(text) == 0) return 0;
        usleep(250000);
    }
    return atoi(text);
}

#define MPIRUN "env OMPI_MCA_btl=^tcp OMPI_MCA_orte_execute_quiet=1 mpirun --oversubscribe --bind-to none --allow-run-as-root"

static void need_mpi(void)
{
#if defined(__SANITIZE_THREAD__)
    SKIP("MPI is not built for the thread sanitizer; test_watch and test_comm run under it");
#endif
    char about[200];
    struct err e = {0};
    if (comm_mpi_about(about, sizeof about, &e)) SKIP("%s", e.message);
    if (system("command -v mpirun > /dev/null")) SKIP("mpirun is not installed");
}

#define NEED_MPI                                                                                                                   \
    (void)state;                                                                                                                   \
    need_mpi()

static void collectives_between_processes(void **state)
{
    NEED_MPI;
    static struct outcome o;
    for (int n = 2; n <= 8; n += n == 3 ? 5 : 1) {
        char want[64];
        run(&o, MPIRUN " -n %d %s rank collectives", n, exe);
        snprintf(want, sizeof want, "all right on %d ranks\n", n);
        if (o.status || strcmp(o.text, want)) fail_msg("%d: %s", o.status, o.text);
    }
}

static void starts_the_ranks_by_itself(void **state)
{
    NEED_MPI;
    static struct outcome o;
    run(&o, "RANKS=3 %s rank collectives", exe);
    assert_string_equal(o.text, "all right on 3 ranks\n");
    assert_int_equal(o.status, 0);
    run(&o, "RANKS=3 %s rank all_wrong", exe);
    assert_string_equal(o.text, "tare: x.ini:3: the same on all\n");
    assert_int_equal(o.status, 3);
}

static void refuses_another_number(void **state)
{
    NEED_MPI;
    static struct outcome o;
    run(&o, "RANKS=3 " MPIRUN " -n 2 %s rank collectives", exe);
    assert_non_null(strstr(o.text, "dist.ranks = 3, but the launcher (mpirun, srun) started 2"));
    assert_int_equal(o.messages, 1);
    assert_int_equal(o.status, 3);
}

/* Checks that the one message contains these parts. It must come long before the timeout would end
 * the job (600 s, unless PATIENCE sets another one). */
static void fails(const char *environment, int ranks, const char *job, const char *const *parts)
{
    static struct outcome o;
    run(&o, "%s " MPIRUN " -n %d %s rank %s", environment, ranks, exe, job);
    for (; *parts; parts++)
        if (!strstr(o.text, *parts)) fail_msg("%s: no '%s' in: %s", environment, *parts, o.text);
    if (o.messages != 1) fail_msg("%s: %d messages: %s", environment, o.messages, o.text);
    if (o.status == 0) fail_msg("%s: exit status 0", environment);
    if (o.seconds > 500) fail_msg("%s: took %.1f s: %s", environment, o.seconds, o.text);
    const int left = left_behind();
    if (left) fail_msg("%s: %d processes are left", environment, left);
}

#define SAYS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void a_killed_rank_ends_the_job(void **state)
{
    NEED_MPI;
    fails("TARE_FAULT=rank=1,stage=update,step=2,kind=kill", 4, "steps",
          SAYS("rank 1 (host ", ") failed in update of step 2: its process has died", "--resume"));
    fails("TARE_FAULT=rank=0,stage=rollout,step=3,kind=kill", 4, "steps",
          SAYS("rank 0 (host ", ") failed in rollout of step 3: its process has died"));
    fails("TARE_FAULT=rank=3,stage=update,step=2,kind=kill,after=0.05", 4, "steps", SAYS("rank 3 (host ", "update of step 2"));
    fails("TARE_FAULT=rank=1,stage=rollout,step=1,kind=exit", 2, "steps", SAYS("rank 1 (host ", "rollout of step 1"));
}

static void a_hanging_rank_is_found(void **state)
{
    NEED_MPI;
    fails("PATIENCE=5 TARE_FAULT=rank=2,stage=update,step=2,kind=hang", 4, "steps",
          SAYS("rank 2 (host ", "failed in update of step 2: it hangs", "in all_to_all", "dist.timeout_s = 5", "missing: 2"));
    fails("PATIENCE=5 TARE_FAULT=rank=0,stage=rollout,step=2,kind=hang", 2, "steps",
          SAYS("rank 0 (host ", "failed in rollout of step 2: it hangs", "in barrier"));
}

static void an_error_of_one_rank_is_the_error_of_all(void **state)
{
    NEED_MPI;
    fails("TARE_FAULT=rank=2,stage=update,step=1,kind=fail", 4, "steps",
          SAYS("rank 2 (host ", "failed in update of step 1: simulated failure"));
    fails("TARE_FAULT=rank=0,stage=update,step=1,kind=fail", 2, "steps",
          SAYS("rank 0 (host ", "failed in update of step 1: simulated failure"));
}

static void a_crash_is_named(void **state)
{
    NEED_MPI;
    fails("A=b", 3, "crash", SAYS("rank 2 (host ", "failed in update of step 7: it crashed with Segmentation fault"));
}

/* mpirun itself is killed, so the ranks must end themselves (their output is lost with mpirun). */
static void no_orphan_outlives_mpirun(void **state)
{
    NEED_MPI;
    static struct outcome o;
    run(&o,
        "TARE_FAULT=rank=1,stage=update,step=2,kind=hang sh -c '" MPIRUN
        " -n 2 %s rank steps & p=$!; sleep 2; kill -9 $p; wait $p'",
        exe);
    assert_int_equal(left_behind(), 0);
}

/* Without MPI in the program's folder the error names the package to install. */
static void says_what_to_install(void **state)
{
    (void)state;
    static struct outcome o;
    const char *folder = make_test_folder("tare-ranks");
    assert_non_null(folder);
    run(&o, "sh -c 'cp %s %s/program && RANKS=2 %s/program rank steps'; rm -r %s", exe, folder, folder, folder);
    if (!strstr(o.text,
                "there is no MPI for several ranks (libtare_mpi.so is not in the program's folder); install it (apt-get install "
                "libopenmpi-dev"))
        fail_msg("%s", o.text);
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "rank")) return run_rank(argc, argv);
    const ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    if (n <= 0) return 1;
    exe[n] = 0;
#if defined(__SANITIZE_ADDRESS__)
    /* For leaks in MPI itself. */
    setenv("ASAN_OPTIONS", "detect_leaks=0:allocator_may_return_null=1", 1);
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collectives_between_processes),
        cmocka_unit_test(starts_the_ranks_by_itself),
        cmocka_unit_test(refuses_another_number),
        cmocka_unit_test(a_killed_rank_ends_the_job),
        cmocka_unit_test(a_hanging_rank_is_found),
        cmocka_unit_test(an_error_of_one_rank_is_the_error_of_all),
        cmocka_unit_test(a_crash_is_named),
        cmocka_unit_test(no_orphan_outlives_mpirun),
        cmocka_unit_test(says_what_to_install),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
