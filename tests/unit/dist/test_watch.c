/* The watch alone, between processes that this test forks, without MPI: each fault of a rank, with
 * the message and exit status that follow. */
#include "base/fs.h"
#include "base/signals.h"
#include "check.h"
#include "dist/watch.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Every job must end within 10 s: a death, an error or a crash within 3 s, a hanging rank 1 s after
 * its timeout, a silent rank after WATCH_SILENCE. Meanwhile the ranks are busy for 240 ticks. */
enum { RANKS = 3, MOST_TICKS = 40 };

static struct shared { /* between processes */
    char address[WATCH_ADDRESS];
    volatile int listens, arrived, left, done, ticks;
} * shared;

typedef void (*job)(struct watch *w, int rank);

static void nap(double seconds)
{
    usleep((useconds_t)(seconds * 1e6));
}

static void wait_for(volatile int *count, int n)
{
    while (__atomic_load_n(count, __ATOMIC_SEQ_CST) < n) nap(0.002);
}

static void run_rank(int rank, job what, double timeout_s)
{
    struct err e = {0};
    struct watch *w = NULL;
    tare_status status;
    const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL}; /* cmocka handles them in this process */
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) signal(signals[i], SIG_DFL);
    if (rank == 0) {
        status = watch_listen(RANKS, shared->address, &w, &e);
        __atomic_store_n(&shared->listens, 1, __ATOMIC_SEQ_CST);
    } else {
        wait_for(&shared->listens, 1);
        status = watch_connect(rank, RANKS, shared->address, &w, &e);
    }
    if (!status) status = watch_start(w, timeout_s, &e);
    if (status) {
        fprintf(stderr, "rank %d: %s\n", rank, e.message);
        _exit(9);
    }
    __atomic_add_fetch(&shared->arrived, 1, __ATOMIC_SEQ_CST);
    wait_for(&shared->arrived, RANKS);
    what(w, rank);
    __atomic_add_fetch(&shared->done, 1, __ATOMIC_SEQ_CST); /* the barrier before the end */
    wait_for(&shared->done, RANKS);
    watch_farewell(w);
    watch_free(w);
    _exit(0);
}

/* Counts naps of a quarter of a second, like those of the watching threads, from the moment when
 * all ranks are watched. A busy machine or a debugger slows these ticks as much as the watch, so a
 * limit in ticks holds where one in seconds would not. */
static void count_ticks(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* it ends with this program */
    wait_for(&shared->arrived, RANKS);
    for (;;) {
        nap(0.25);
        __atomic_add_fetch(&shared->ticks, 1, __ATOMIC_SEQ_CST);
    }
}

static struct outcome {
    int status[RANKS]; /* exit status; 128 + signal */
    int ticks;
    char text[8000];
    int messages;
} got;

static void (*meanwhile)(const pid_t *pids); /* run by this process on the ranks */

static void play(job what, double timeout_s)
{
    char file[FS_PATH];
    struct err e = {0};
    pid_t pids[RANKS];
    assert_ok(fs_temporary(file, "tare-watch", &e), &e);
    const int fd = mkstemp(file);
    assert_true(fd >= 0);
    memset(shared, 0, sizeof *shared);
    fflush(NULL);
    const pid_t ticker = fork();
    assert_true(ticker >= 0);
    if (!ticker) count_ticks();
    for (int r = 0; r < RANKS; r++) {
        pids[r] = fork();
        assert_true(pids[r] >= 0);
        if (pids[r]) continue;
        dup2(fd, STDERR_FILENO);
        run_rank(r, what, timeout_s);
    }
    if (meanwhile) meanwhile(pids);
    for (int r = 0; r < RANKS; r++) {
        int how;
        assert_int_equal(waitpid(pids[r], &how, 0), pids[r]);
        got.status[r] = WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
    }
    got.ticks = __atomic_load_n(&shared->ticks, __ATOMIC_SEQ_CST);
    kill(ticker, SIGKILL);
    assert_int_equal(waitpid(ticker, NULL, 0), ticker);
    lseek(fd, 0, SEEK_SET);
    const ssize_t n = read(fd, got.text, sizeof got.text - 1);
    got.text[n > 0 ? n : 0] = 0;
    close(fd);
    unlink(file);
    got.messages = 0;
    for (const char *p = got.text; (p = strstr(p, "tare: ")); p++) got.messages++;
}

static void expect_message(const char *const *parts, int status)
{
    for (; *parts; parts++)
        if (!strstr(got.text, *parts)) fail_msg("no '%s' in: %s", *parts, got.text);
    if (got.messages != 1) fail_msg("%d messages: %s", got.messages, got.text);
    for (int r = 0; r < RANKS; r++)
        if (got.status[r] != status && got.status[r] < 128) fail_msg("rank %d ends with %d: %s", r, got.status[r], got.text);
    if (got.ticks > MOST_TICKS) fail_msg("the job ends after %d ticks of a quarter of a second: %s", got.ticks, got.text);
}

#define SAYS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* ---- ways to end */

static void well(struct watch *w, int rank)
{
    for (int64_t step = 1; step < 4; step++) {
        watch_stage(w, "rollout", step);
        watch_enter(w, "barrier");
        nap(0.05 * rank);
        watch_enter(w, NULL);
    }
    nap(0.5);
}

static void a_regular_end(void **state)
{
    (void)state;
    play(well, 30);
    assert_string_equal(got.text, "");
    for (int r = 0; r < RANKS; r++) assert_int_equal(got.status[r], 0);
}

static void die_as(struct watch *w, int rank, int victim)
{
    watch_stage(w, "update", 7);
    if (rank == victim) {
        nap(0.3);
        kill(getpid(), SIGKILL);
    }
    watch_enter(w, "all_gather");
    nap(60);
}

static void rank_1_dies(struct watch *w, int rank)
{
    die_as(w, rank, 1);
}

static void rank_0_dies(struct watch *w, int rank)
{
    die_as(w, rank, 0);
}

static void rank_0_dies_at_once(struct watch *w, int rank)
{
    (void)w;
    if (!rank) kill(getpid(), SIGKILL);
    nap(60);
}

static void a_death(void **state)
{
    (void)state;
    play(rank_1_dies, 0);
    expect_message(SAYS("rank 1 (host ", "failed in update of step 7: its process has died", "--resume"), 1);
    assert_int_equal(got.status[1], 128 + SIGKILL);
    play(rank_0_dies, 0);
    expect_message(SAYS("rank 0 (host ", "failed in update of step 7: its process has died"), 1);
    play(rank_0_dies_at_once, 0);
    expect_message(SAYS("rank 0 (host ", "failed in the start: its process has died"), 1);
    assert_null(strstr(got.text, "process 0)"));
}

/* Simulates mpirun after a rank has died: the others are asked to end, and killed if they do not.
 * Rank 0 sees both at once. */
static void rank_1_is_asked_to_end(struct watch *w, int rank)
{
    signals_catch();
    if (rank == 1) raise(SIGTERM);
    watch_stage(w, "update", 7);
    __atomic_add_fetch(&shared->left, 1, __ATOMIC_SEQ_CST);
    nap(60);
}

static void wait_for_state(pid_t pid, char wanted) /* T: stopped, Z: ended */
{
    char path[64], text[400] = "";
    const char *at = NULL;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    while (!at || at[2] != wanted) {
        FILE *f = fopen(path, "r");
        assert_non_null(f);
        assert_non_null(fgets(text, sizeof text, f));
        fclose(f);
        at = strrchr(text, ')');
        nap(0.002);
    }
}

static void kill_2_then_1(const pid_t *pids)
{
    wait_for(&shared->left, RANKS);
    kill(pids[0], SIGSTOP);
    wait_for_state(pids[0], 'T');
    for (int r = 2; r >= 1; r--) {
        kill(pids[r], SIGKILL);
        wait_for_state(pids[r], 'Z');
    }
    kill(pids[0], SIGCONT);
}

static void kill_1(const pid_t *pids)
{
    wait_for(&shared->left, RANKS);
    kill(pids[1], SIGKILL);
}

static void a_death_is_not_its_consequence(void **state)
{
    (void)state;
    meanwhile = kill_2_then_1;
    play(rank_1_is_asked_to_end, 0);
    expect_message(SAYS("rank 2 (host ", "failed in update of step 7: its process has died"), 1);
    meanwhile = kill_1; /* no other rank has died */
    play(rank_1_is_asked_to_end, 0);
    expect_message(SAYS("rank 1 (host ", "failed in update of step 7: its process has died"), 1);
    meanwhile = NULL;
}

static void rank_2_fails(struct watch *w, int rank)
{
    struct err e = {0};
    watch_stage(w, "verify", 2);
    if (rank == 2) {
        err_set(&e, TARE_E_CONFIG, __FILE__, __LINE__, "step 2, verify: no such thing");
        watch_fail(w, &e);
    }
    watch_enter(w, "gather");
    nap(60);
}

static void all_fail_alike(struct watch *w, int rank)
{
    struct err e = {0};
    (void)rank;
    err_set(&e, TARE_E_CANCELLED, __FILE__, __LINE__, "interrupted");
    watch_fail(w, &e);
}

/* Rank 1 only notices that rank 2 has failed for its own reason. */
static void one_error_is_an_echo(struct watch *w, int rank)
{
    struct err e = {0};
    watch_stage(w, "update", 3);
    if (rank == 1) err_set(&e, TARE_E_COMM, __FILE__, __LINE__, "the other side has closed");
    if (rank == 2) err_set(&e, TARE_E_NOMEM, __FILE__, __LINE__, "no memory for gradients");
    if (rank == 2) nap(0.1);
    if (rank) watch_fail(w, &e);
    nap(60);
}

static void errors(void **state)
{
    (void)state;
    play(rank_2_fails, 0);
    expect_message(SAYS("rank 2 (host ", ") failed in verify of step 2: no such thing"), 3);
    play(all_fail_alike, 0);
    expect_message(SAYS("tare: interrupted\n"), 130);
    play(one_error_is_an_echo, 0);
    expect_message(SAYS("rank 2 (host ", "failed in update of step 3: no memory for gradients"), 1);
}

static void rank_1_hangs(struct watch *w, int rank)
{
    watch_stage(w, "rollout", 4);
    if (rank != 1) watch_enter(w, "gather");
    nap(60);
}

static void rank_0_hangs(struct watch *w, int rank)
{
    watch_stage(w, "rollout", 4);
    if (rank) watch_enter(w, "gather");
    nap(60);
}

static void all_are_in_it(struct watch *w, int rank)
{
    watch_stage(w, "rollout", 4);
    if (rank) nap(0.3);
    watch_enter(w, "gather");
    nap(60);
}

static void hangs(void **state)
{
    (void)state;
    play(rank_1_hangs, 1);
    expect_message(
        SAYS("rank 1 (host ", "failed in rollout of step 4: it hangs; rank ", "has waited for it in gather", "missing: 1)"), 1);
    play(rank_0_hangs, 1);
    expect_message(SAYS("rank 0 (host ", "failed in rollout of step 4: it hangs", "missing: 0)"), 1);
    play(all_are_in_it, 1);
    expect_message(SAYS("gather has taken ", "although all ranks are in it", "is the network up?"), 1);
}

/* A host that vanishes closes no connection, and neither does a stopped process. */
static void goes_on(struct watch *w, int rank)
{
    (void)rank;
    watch_stage(w, "rollout", 5);
    __atomic_add_fetch(&shared->left, 1, __ATOMIC_SEQ_CST);
    nap(60);
}

static int stopped, reported_by; /* ranks: the stopped one, and the one that reports */

static void stop_one(const pid_t *pids)
{
    wait_for(&shared->left, RANKS);
    kill(pids[stopped], SIGSTOP);
    wait_for_state(pids[reported_by], 'Z');
    kill(pids[stopped], SIGKILL);
}

static void silence(void **state)
{
    (void)state;
    meanwhile = stop_one;
    stopped = 2;
    reported_by = 0;
    play(goes_on, 0);
    expect_message(SAYS("rank 2 (host ", "failed in rollout of step 5: nothing has been heard from it for 7 s"), 1);
    stopped = 0;
    reported_by = 1;
    play(goes_on, 0);
    expect_message(SAYS("rank 0 (host ", "nothing has been heard from it for 7 s (is its host up? was it stopped?)"), 1);
    meanwhile = NULL;
}

/* A slow rank does not hang: before the first stage a rank may be busy alone for longer than
 * timeout_s, and when it finally comes, all are in the collective. (If all are in it for timeout_s,
 * that is a hang: the delay of a busy machine plus 0.4 s must stay below that.) */
static void slow(struct watch *w, int rank)
{
    if (rank == 0) nap(5.5);
    watch_enter(w, "gather");
    __atomic_add_fetch(&shared->left, 1, __ATOMIC_SEQ_CST);
    wait_for(&shared->left, RANKS);
    nap(0.4);
    watch_enter(w, NULL);
    watch_stage(w, "rollout", 1);
    nap(5.5);
}

static void slow_is_not_hanging(void **state)
{
    (void)state;
    play(slow, 4);
    assert_string_equal(got.text, "");
    for (int r = 0; r < RANKS; r++) assert_int_equal(got.status[r], 0);
}

static void rank_2_crashes(struct watch *w, int rank)
{
    watch_stage(w, "apply", 9);
    /* 0.6 s: meanwhile the watching thread has written this rank's state, which the handler must
     * not read. */
    nap(rank == 2 ? 0.6 : 60);
    raise(SIGBUS);
}

static void rank_0_crashes(struct watch *w, int rank)
{
    watch_stage(w, "apply", 9);
    nap(rank == 0 ? 0.6 : 60);
    raise(SIGBUS);
}

static void crashes(void **state)
{
    (void)state;
    play(rank_2_crashes, 0);
    expect_message(SAYS("rank 2 (host ", "failed in apply of step 9: it crashed with Bus error"), 1);
    play(rank_0_crashes, 0);
    expect_message(SAYS("rank 0 (host ", "failed in apply of step 9: it crashed with Bus error"), 1);
}

int main(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_regular_end),
        cmocka_unit_test(a_death),
        cmocka_unit_test(errors),
        cmocka_unit_test(hangs),
        cmocka_unit_test(crashes),
        cmocka_unit_test(silence),
        cmocka_unit_test(slow_is_not_hanging),
        cmocka_unit_test(a_death_is_not_its_consequence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
