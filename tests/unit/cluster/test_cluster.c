/* Tests the cluster stage as the training loop uses it. */
#include "check.h"
#include "folder.h"

#include "base/fs.h"
#include "base/json.h"
#include "cluster/cluster.h"
#include "cluster/inspect.h"

#include <math.h>
#include <string.h>

static const char *FOLDER;

static int make_folder(void **state)
{
    (void)state;
    struct err e;
    struct str rows = {0};
    static const char *const kinds[] = {"adds apples and pears: what is %d + %d?", "walks %d miles and then %d more",
                                        "owes %d dollars at %d percent"};
    char path[FS_PATH];
    if (!(FOLDER = make_test_folder("tare-cluster"))) return 1;
    for (int i = 0; i < 60; i++) {
        char question[80];
        snprintf(question, sizeof question, kinds[i % 3], i, i * 7 % 13);
        if (str_addf(&rows, &e, "{\"id\":\"r%d\",\"question\":\"Ann %s\",\"answer\":\"1\",\"subject\":\"s%d\"}\n", i, question,
                     i % 3))
            return 1;
    }
    snprintf(path, sizeof path, "%s/rows.jsonl", FOLDER);
    const tare_status s = fs_write_atomic(path, rows.data, rows.size, &e);
    str_free(&rows);
    return s != TARE_OK;
}

static int remove_folder(void **state)
{
    (void)state;
    struct err e;
    return fs_remove_tree(FOLDER, &e) != TARE_OK;
}

struct run {
    struct config config;
    struct dataset data;
    struct cluster cluster;
};

static void load(struct run *r, const char *const *settings, int64_t n)
{
    struct err e = {0};
    char dir[FS_PATH], path[FS_PATH];
    const char *all[12];
    snprintf(dir, sizeof dir, "run.dir=%s/run", FOLDER);
    snprintf(path, sizeof path, "%s/rows.jsonl", FOLDER);
    all[0] = dir;
    all[1] = "encoder.plugin=hashed";
    for (int64_t i = 0; i < n; i++) all[2 + i] = settings[i];
    assert_ok(config_load(&r->config, NULL, all, n + 2, &e), &e);
    assert_ok(dataset_load(path, 0, &r->data, &e), &e);
}

static void unload(struct run *r)
{
    cluster_close(&r->cluster);
    dataset_free(&r->data);
    config_free(&r->config);
}

#define OPEN(R, ...)                                                                                                               \
    do {                                                                                                                           \
        const char *const settings_[] = {__VA_ARGS__};                                                                             \
        load(R, settings_, sizeof settings_ / sizeof *settings_);                                                                  \
        assert_ok(cluster_open(&(R)->config, &(R)->data, &(struct cluster_options){0}, &(R)->cluster, &e), &e);                    \
    } while (0)

static void no_codebook(void **state)
{
    (void)state;
    struct err e = {0};
    struct run r = {0};
    struct arena a;
    arena_init(&a, "step");
    OPEN(&r, "codebook.plugin=none");
    const struct row *rows[2] = {&r.data.rows[3], &r.data.rows[4]};
    struct batch b = {.n_groups = 2, .row = rows, .n_clusters = 9};
    assert_ok(cluster_assign(&r.cluster, &b, &a, &e), &e);
    assert_int_equal(b.n_clusters, 0);
    assert_true(b.cluster[0] == -1 && b.cluster[1] == -1);
    arena_free(&a);
    unload(&r);
}

static void trains_caches_and_assigns(void **state)
{
    (void)state;
    struct err e = {0};
    struct run r = {0}, again = {0};
    struct arena a;
    struct str saved = {0};
    arena_init(&a, "step");
    OPEN(&r, "codebook.plugin=kmeans", "codebook.clusters=3", "codebook.restarts=5", "encoder.hashed.dim=64");
    assert_true(r.cluster.trained);
    assert_false(r.cluster.cached);
    assert_int_equal(r.cluster.n_clusters, 3);
    for (int64_t i = 3; i < r.data.n; i++) /* the three kinds of question */
        assert_int_equal(r.cluster.of_row[i], r.cluster.of_row[i % 3]);
    assert_true(r.cluster.of_row[0] != r.cluster.of_row[1] && r.cluster.of_row[1] != r.cluster.of_row[2] &&
                r.cluster.of_row[0] != r.cluster.of_row[2]);
    /* an equal question that is not a row of the data set */
    const struct row outside = r.data.rows[5];
    const struct row *rows[3] = {&r.data.rows[3], &outside, &r.data.rows[7]};
    struct batch b = {.n_groups = 3, .row = rows};
    assert_ok(cluster_assign(&r.cluster, &b, &a, &e), &e);
    assert_int_equal(b.n_clusters, 3);
    assert_int_equal(b.cluster[0], r.cluster.of_row[3]);
    assert_int_equal(b.cluster[1], r.cluster.of_row[5]);
    assert_int_equal(b.cluster[2], r.cluster.of_row[7]);
    for (int64_t k = 0; k < 3; k++) assert_int_equal(r.cluster.used[k], 1);
    assert_ok(cluster_save(&r.cluster, &saved, &e), &e);
    /* a second start: the codebook exists, the embeddings come from the cache, and the state fits
     */
    OPEN(&again, "codebook.plugin=kmeans", "codebook.clusters=3", "encoder.hashed.dim=64");
    assert_false(again.cluster.trained);
    assert_true(again.cluster.cached);
    assert_memory_equal(again.cluster.of_row, r.cluster.of_row, (size_t)r.data.n * sizeof(int32_t));
    assert_ok(cluster_resume(&again.cluster, saved.data, saved.size, "checkpoint", &e), &e);
    assert_memory_equal(again.cluster.used, r.cluster.used, 3 * sizeof(int64_t));
    again.cluster.of_row[0] ^= 1;
    assert_int_equal(cluster_resume(&again.cluster, saved.data, saved.size, "checkpoint", &e), TARE_E_CONFIG);
    assert_non_null(strstr(e.message, "assignment_hash"));
    unload(&again);
    /* another encoder with the same file */
    const char *const other[] = {"codebook.plugin=kmeans", "encoder.hashed.dim=32"};
    load(&again, other, 2);
    assert_int_equal(cluster_open(&again.config, &again.data, &(struct cluster_options){0}, &again.cluster, &e), TARE_E_CONFIG);
    assert_non_null(strstr(e.message, "dim=64"));
    assert_non_null(strstr(e.message, "dim=32"));
    assert_non_null(strstr(e.message, "hash "));
    unload(&again);
    str_free(&saved);
    arena_free(&a);
    unload(&r);
}

static void codebooks_of_rows(void **state)
{
    (void)state;
    struct err e = {0};
    struct run r = {0};
    OPEN(&r, "codebook.plugin=field", "codebook.field.values=s0, s2, s9");
    assert_int_equal(r.cluster.n_clusters, 3);
    assert_int_equal(r.cluster.rows[2], 0);
    assert_int_equal(r.cluster.unassigned, 20);
    assert_int_equal(r.cluster.of_row[2], 1);
    struct str name = {0};
    assert_ok(cluster_name(&r.cluster, 1, &name, &e), &e);
    assert_string_equal(name.data, "s2");
    str_free(&name);
    assert_null(r.cluster.encoder);
    unload(&r);
    OPEN(&r, "codebook.plugin=prompt");
    assert_int_equal(r.cluster.n_clusters, 60);
    for (int i = 0; i < 60; i++) assert_int_equal(r.cluster.of_row[i], i);
    unload(&r);
}

static void rollouts_are_explained(void **state)
{
    (void)state;
    struct err e = {0};
    struct str dump = {0};
    json_t *o;
    char path[FS_PATH];
    snprintf(path, sizeof path, "%s/dump.jsonl", FOLDER);
    for (int i = 0; i < 40; i++)
        assert_ok(str_addf(&dump, &e, "{\"cluster\":%d,\"reward\":%d}\n", i % 2, i % 2 ? 1 : i % 4 == 0), &e);
    assert_ok(fs_write_atomic(path, dump.data, dump.size, &e), &e);
    assert_ok(inspect_rollouts(path, &o, &e), &e);
    /* cluster 0: mean 1/2, cluster 1: mean 1; total variance 3/16, between 1/16 */
    assert_true(fabs(json_double_or(o, "reward_mean", 0) - 0.75) < 1e-12);
    assert_true(fabs(json_double_or(o, "explained", 0) - 1.0 / 3) < 1e-12);
    json_decref(o);
    str_free(&dump);
}

static void silhouette_of_two_lumps(void **state)
{
    (void)state;
    struct err e = {0};
    const float x[] = {0, 2, 10, 12};
    const int32_t cluster[] = {0, 0, 1, 1};
    const struct inspect_rows rows = {.x = x, .cluster = cluster, .n = 4, .d = 1, .k = 3};
    double value;
    int64_t sampled;
    assert_ok(inspect_silhouette(&rows, &(struct inspect_options){.sample = 100}, &value, &sampled, &e), &e);
    assert_int_equal(sampled, 4);
    /* a = 2; b = 11 for the outer two, 9 for the inner */
    assert_true(fabs(value - ((9.0 / 11 + 7.0 / 9) / 2)) < 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_codebook),
        cmocka_unit_test(trains_caches_and_assigns),
        cmocka_unit_test(codebooks_of_rows),
        cmocka_unit_test(rollouts_are_explained),
        cmocka_unit_test(silhouette_of_two_lumps),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
