#include "check.h"
#include "folder.h"

#include "base/fs.h"
#include "config/config.h"
#include "config/keys.h"

#include <string.h>

static const char *folder;

static int setup(void **state)
{
    (void)state;
    return (folder = make_test_folder("tare-config")) == NULL;
}

static int teardown(void **state)
{
    (void)state;
    return (int)fs_remove_tree(folder, NULL);
}

static const char *write_file(const char *name, const char *text)
{
    static char path[4][300];
    static int turn;
    char *p = path[turn++ % 4];
    snprintf(p, 300, "%s/%s", folder, name);
    struct err e = {0};
    assert_ok(fs_write_atomic(p, text, (int64_t)strlen(text), &e), &e);
    return p;
}

static void loads(struct config *c, const char *text, const char *override)
{
    struct err e = {0};
    const char *file = text ? write_file("a.ini", text) : NULL;
    assert_ok(config_load(c, file, &override, override != NULL, &e), &e);
}

/* Expects a configuration error at the given line of a.ini (0: the command line) that contains
 * `what`. */
static void refused(const char *text, const char *override, int line, const char *what)
{
    struct config c;
    struct err e = {0};
    const char *file = text ? write_file("a.ini", text) : NULL;
    const tare_status got = config_load(&c, file, &override, override != NULL, &e);
    if (got != TARE_E_CONFIG) fail_msg("status %d for: %s %s (%s)", got, text ? text : "", override ? override : "", e.message);
    char where[350];
    if (line) {
        snprintf(where, sizeof where, "%s/a.ini:%d:", folder, line);
    } else {
        snprintf(where, sizeof where, "command line:");
    }
    if (line >= 0 && strncmp(e.message, where, strlen(where))) fail_msg("expected %s in: %s", where, e.message);
    if (!strstr(e.message, what)) fail_msg("expected '%s' in: %s", what, e.message);
}

static void defaults_are_for_a_first_run(void **state)
{
    (void)state;
    struct config c;
    loads(&c, NULL, NULL);
    assert_int_equal(c.rollout.prompts, 16);
    assert_int_equal(c.rollout.group_size, 8);
    assert_int_equal(c.train.minibatch, 64);
    assert_int_equal(c.train.steps, 500);
    assert_int_equal(c.rollout.max_new_tokens, 0);
    assert_string_equal(c.codebook.plugin, "auto");
    assert_true(c.rollout.temperature == 1.0 && c.loss.clip == 0.2 && c.loss.kl_coef == 0 && c.loss.entropy_coef == 0);
    assert_true(c.train.lr == 1e-6 && c.train.beta1 == 0.9 && c.train.beta2 == 0.999 && c.train.eps == 1e-8);
    assert_true(c.train.weight_decay == 0 && c.train.max_grad_norm == 1 && c.train.lr_floor == 0 && c.train.prompt_sharing);
    assert_int_equal(c.train.schedule, SCHEDULE_COSINE);
    assert_string_equal(c.run.dir, "runs/run");
    assert_string_equal(config_where(&c, "train", "lr"), "default");
    config_free(&c);
}

static void file_then_command_line(void **state)
{
    (void)state;
    struct config c;
    loads(&c,
          "\xEF\xBB\xBF# comment\n[train]\n  lr = 3e-4 ; inline\nsteps=7\r\n\n[estimator.bv_blend]\ngamma = 0.9\n[data]\nsuffix = "
          "\"\\nput \\\"x; y\\\" in \\\\boxed{}\"\nsystem = a;b\n",
          "train.lr=0.001");
    assert_true(c.train.lr == 0.001);
    assert_string_equal(config_where(&c, "train", "lr"), "command line");
    assert_int_equal(c.train.steps, 7);
    assert_non_null(strstr(config_where(&c, "train", "steps"), "a.ini:4"));
    assert_string_equal(c.data.suffix, "\nput \"x; y\" in \\boxed{}");
    assert_string_equal(c.data.system, "a;b");
    assert_string_equal(c.params->section, "estimator.bv_blend");
    assert_string_equal(c.params->value, "0.9");
    assert_non_null(strstr(c.params->where, "a.ini:7"));
    assert_string_equal(c.run.name, "a");
    assert_string_equal(c.run.dir, "runs/a");
    config_free(&c);
}

static void plugin_parameters_from_the_command_line(void **state)
{
    (void)state;
    struct config c;
    loads(&c, "[estimator.bv_blend]\ngamma = 0.9\n[sweep]\nestimator.plugin = grpo, bv_blend\n", "estimator.bv_blend.gamma=0.5");
    assert_string_equal(c.params->key, "gamma");
    assert_string_equal(c.params->value, "0.5");
    assert_string_equal(c.params->where, "command line");
    assert_string_equal(c.params->next->section, "sweep");
    assert_string_equal(c.params->next->key, "estimator.plugin");
    assert_null(c.params->next->next);
    config_free(&c);
    loads(&c, NULL, "sweep.estimator.bv_blend.gamma=0.1 0.9");
    assert_string_equal(c.params->key, "estimator.bv_blend.gamma");
    config_free(&c);
}

static void encoders_and_codebooks_have_sections(void **state)
{
    (void)state;
    struct config c;
    loads(&c, "[codebook.field]\nfield = level\n[encoder.hashed]\ndim = 64\n", "codebook.field.field=subject");
    assert_string_equal(c.params->section, "codebook.field");
    assert_string_equal(c.params->value, "subject");
    assert_string_equal(c.params->next->section, "encoder.hashed");
    assert_null(c.params->next->next);
    config_free(&c);
}

struct seen {
    char text[600];
};

static tare_status see(void *ctx, const struct config_difference *d, struct err *e)
{
    struct seen *s = ctx;
    (void)e;
    const size_t n = strlen(s->text);
    snprintf(s->text + n, sizeof s->text - n, "%s.%s %s %s %d;", d->section, d->key, d->before, d->after, d->changes_training);
    return TARE_OK;
}

static void differences_are_reported(void **state)
{
    (void)state;
    struct config a, b;
    struct seen s = {""};
    struct err e = {0};
    loads(&a, "[train]\nlr = 1e-4\n[estimator.bv_blend]\ngamma = 0.1\n[sweep]\nrun.seed = 1..3\n", NULL);
    loads(&b, "[train]\nlr = 1\n[run]\nthreads = 2\n[estimator.bv_blend]\ndelta = 1\n[estimator.grpo]\nddof = 0\n", NULL);
    assert_ok(config_compare(&a, &b, see, &s, &e), &e);
    assert_string_equal(s.text, "run.threads 0 2 0;train.lr 0.0001 1 1;estimator.bv_blend.gamma 0.1 (not set) 1;"
                                "estimator.bv_blend.delta (not set) 1 1;estimator.grpo.ddof (not set) 0 0;");
    s.text[0] = 0;
    assert_ok(config_compare(&a, &a, see, &s, &e), &e);
    assert_string_equal(s.text, "");
    config_free(&a);
    config_free(&b);
}

/* Every key in the starter's comments is in the table, and the file loads once its two keys are
 * set. */
static void the_starter_loads(void **state)
{
    (void)state;
    struct config c;
    struct str text = {0};
    struct err e = {0};
    assert_ok(config_starter(&text, &e), &e);
    assert_non_null(strstr(text.data, "\n[model]\n"));
    assert_non_null(strstr(text.data, "\n;lr = "));
    for (char *p = text.data; (p = strstr(p, "\n;"));) p[1] = ' ';
    loads(&c, text.data, "data.eval=x");
    assert_string_equal(c.codebook.plugin, "auto");
    config_free(&c);
    str_free(&text);
}

static void includes(void **state)
{
    (void)state;
    struct config c;
    write_file("base.ini", "[train]\nlr = 1\nsteps = 5\n[model]\nwarm_start = warm.ini\n");
    loads(&c, "include = base.ini\n[train]\nlr = 2\n", NULL);
    assert_true(c.train.lr == 2);
    assert_int_equal(c.train.steps, 5);
    char warm[300];
    snprintf(warm, sizeof warm, "%s/warm.ini", folder);
    assert_string_equal(c.model.warm_start, warm);
    config_free(&c);
    refused("include = none.ini\n", NULL, 1, "no such file");
    refused("[train]\ninclude = base.ini\n", NULL, 2, "no key 'include'");
    write_file("b.ini", "\ninclude = a.ini\n");
    refused("include = b.ini\n", NULL, -1, "b.ini:2: include = ");
    refused("include = b.ini\n", NULL, -1, "a cycle");
    write_file("base.ini", "[train]\n\nlr = x\n");
    refused("include = base.ini\n", NULL, -1, "base.ini:3: train.lr = 'x' is not a number");
}

static void wrong_input_is_refused(void **state)
{
    (void)state;
    refused("[train]\nlearning_rate = 1\n", NULL, 2, "TRL's learning_rate is train.lr here");
    refused("[train]\nlearning = 1\n", NULL, 2, "no key 'learning'");
    refused("[data]\nprompt = plain\nsystem = Be good.\n", NULL, -1, "a plain prompt has no system message");
    refused("[train]\nstep = 1\n", NULL, 2, "did you mean 'steps'?");
    refused("[rollout]\nlr = 1\n", NULL, 2, "did you mean 'train.lr'?");
    refused("[estimator]\ngamma = 1\n", NULL, 2, "go in [estimator.NAME]");
    refused("[trian]\nlr = 1\n", NULL, 2, "did you mean [train]?");
    refused("[train.x]\nlr = 1\n", NULL, 2, "unknown section [train.x]");
    refused("[codebok]\nseed = 1\n", NULL, 2, "did you mean [codebook]?");
    refused("[enocder.hashed]\ndim = 8\n", NULL, 2, "did you mean [encoder.hashed]?");
    refused("[clusterer]\ncodebook = field\n", NULL, 2, "clusterer.codebook is codebook.plugin");
    refused("[clusterer]\nseed = 1\n", NULL, 2, "clusterer.seed is codebook.seed");
    refused("[clusterer.hashed]\ndim = 8\n", NULL, 2, "go in [encoder.hashed]");
    refused(NULL, "clusterer.encoder=hashed", 0, "clusterer.encoder is encoder.plugin");
    refused("[train]\nsteps = 1.5\n", NULL, 2, "is not a whole number");
    refused("[train]\nsteps =\n", NULL, 2, "is not a whole number");
    refused("[train]\nsteps = 99999999999999999999\n", NULL, 2, "does not fit");
    refused("[train]\nsteps = 0\n", NULL, 2, "out of range; allowed: at least 1");
    refused("[train]\nlr = nan\n", NULL, 2, "is not a finite number");
    refused("[train]\nlr = 1e-4x\n", NULL, 2, "is not a number");
    refused("[rollout]\ntop_p = 0\n", NULL, 2, "allowed: above 0, at most 1");
    refused("[model]\ninit_std = 0\n", NULL, 2, "out of range; allowed: above 0");
    refused("[train]\nschedule = cosin\n", NULL, 2, "allowed: cosine, constant, linear");
    refused("[data]\nshuffle = maybe\n", NULL, 2, "allowed: true or false");
    refused(NULL, "train.lr=x", 0, "train.lr = 'x' is not a number");
    refused(NULL, "trainlr", 0, "is not section.key=value");
    refused(NULL, "data.system=\xff", 0, "not valid UTF-8");
    refused("[run]\ndir = runs/${run.sed}\n", NULL, 2, "unknown reference '${run.sed}'");
    refused("[run]\nname = ${run.name}\n", NULL, 2, "unknown reference '${run.name}'");
}

/* Lines that libinih alone would cut, join or skip. */
static void lines_are_read_as_written(void **state)
{
    (void)state;
    struct config c;
    refused("[train]\nlr = 1\nlr = 2\n", NULL, 3, "appears twice in this file, first in line 2");
    refused("[train]\nlr = 1\n[run]\n[train]\nlr = 2\n", NULL, 5, "appears twice in this file");
    refused("[train\nlr = 1\n", NULL, 1, "closing bracket");
    refused("[train] lr = 1\n", NULL, 1, "after the section's bracket");
    refused("[estimator.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]\n", NULL, 1, "at most 48");
    refused("[train]\nnonsense\n", NULL, 2, "expected key = value");
    refused("[train]\nlr: 1\n", NULL, 2, "expected key = value");
    refused("[train]\n= 1\n", NULL, 2, "the key before the value is missing");
    refused("lr = 1\n", NULL, 1, "before the first section");
    refused("[data]\nsystem = \"a\n", NULL, 2, "closing quote");
    refused("[data]\nsystem = \"a\" b\n", NULL, 2, "after the closing quote");
    refused("[data]\nsystem = \"\\q\"\n", NULL, 2, "unknown");
    refused("[data]\nsystem = \xc3(\n", NULL, 2, "not valid UTF-8");
    loads(&c, "[train]\n  lr = 0.5\n    steps = 3\n", NULL); /* not a continuation of lr */
    assert_true(c.train.lr == 0.5 && c.train.steps == 3);
    config_free(&c);
    char *big = malloc(20100);
    memset(big, 'a', 20100);
    memcpy(big, "[data]\nsystem = ", 16);
    big[10000] = 0;
    loads(&c, big, NULL);
    assert_int_equal(strlen(c.data.system), 10000 - 16);
    config_free(&c);
    big[10000] = 'a';
    big[20000] = 0;
    refused(big, NULL, 2, "a line has at most");
    free(big);
}

static void relations_name_both_keys(void **state)
{
    (void)state;
    refused("[train]\nminibatch = 60\n", NULL, -1, "train.minibatch = 60");
    refused("[train]\nminibatch = 60\n", NULL, -1, "rollout.group_size = 8 (default)");
    refused("[train]\nminibatch = 256\n", NULL, -1, "rollout.prompts = 16");
    refused("[loss]\nclip_high = 0.1\n", NULL, -1, "loss.clip = 0.2");
    refused("[loss]\ndual_clip = 0.5\n", NULL, -1, "above 1");
    refused("[loss]\nrollout_is = tis\n", NULL, -1, "loss.old_logprobs = sampler");
    refused("[eval]\nevery = 5\n", NULL, -1, "data.eval");
    refused("[verifier]\noverlong = linear\n", NULL, -1, "overlong_buffer");
    refused("[model]\ninit = qwen2\npath = x\nheads = 4\nkv_heads = 3\n", NULL, -1, "model.kv_heads = 3");
    refused("[model]\ninit = qwen2\n", NULL, -1, "model.path");
    refused("[model]\nmax_position_embeddings = 4096\n[rollout]\nmax_new_tokens = 8192\n", NULL, -1,
            "rollout.max_new_tokens = 8192");
    refused(NULL, "run.dir=", -1, "run.dir is empty");
}

static void substitution(void **state)
{
    (void)state;
    struct config c;
    loads(&c,
          "[run]\nseed = 3\nname = x-${run.seed}\ndir = out/${run.name}\n[model]\npath = runs/base-s${run.seed}\n[data]\nsuffix = "
          "${\\boxed{}}$\n"
          "[codebook.kmeans]\nfile = cb-${run.seed}.bin\n",
          NULL);
    assert_string_equal(c.run.name, "x-3");
    assert_string_equal(c.run.dir, "out/x-3");
    assert_string_equal(c.model.path, "runs/base-s3");
    assert_string_equal(c.data.suffix, "${\\boxed{}}$");
    assert_string_equal(c.params->value, "cb-3.bin");
    struct err e = {0};
    assert_ok(config_set(&c, "model", "path", "m${run.seed}", "test", &e), &e);
    assert_string_equal(c.model.path, "m3");
    config_free(&c);
}

/* With every key away from its default, dump, load and dump give the same text, and the struct the
 * same values. */
static void dump_loads_back(void **state)
{
    (void)state;
    struct config a, b;
    struct err e = {0};
    loads(&a,
          "[run]\nseed = 5\n[train]\nlr = 0.1234567890123456\nwarmup_ratio=0.3333333333333333\n[data]\nsystem = \"  lead ; "
          "\\\"q\\\" \\\\ \\n\\tend \"\n"
          "[estimator.bv_blend]\ngamma = 0.5\nmapping = \"a ; b\"\n[verifier.math]\nx = 1\n[sweep]\nrun.seed = 0 1 2\n",
          "estimator.bv_blend.n0=3");
    struct str first = {0}, second = {0};
    assert_ok(config_dump(&a, &first, &e), &e);
    loads(&b, first.data, NULL);
    assert_ok(config_dump(&b, &second, &e), &e);
    assert_string_equal(first.data, second.data);
    assert_true(a.train.lr == b.train.lr && a.train.warmup_ratio == b.train.warmup_ratio);
    assert_string_equal(a.data.system, b.data.system);
    int n = 0;
    for (const struct config_param *p = a.params; p; p = p->next, n++) {
        const struct config_param *q = b.params;
        while (q && (strcmp(q->section, p->section) || strcmp(q->key, p->key))) q = q->next;
        assert_non_null(q);
        assert_string_equal(p->value, q->value);
    }
    assert_int_equal(n, 5);
    str_free(&first);
    str_free(&second);
    config_free(&a);
    config_free(&b);
}

/* Blanks at both ends of a value, of every kind that the command line allows and a file's reader
 * strips. */
static void blanks_at_the_ends_stay(void **state)
{
    (void)state;
    struct config a, b;
    struct err e = {0};
    struct str first = {0};
    for (const char *blank = " \t\n\r\v\f"; *blank; blank++) {
        char override[32];
        snprintf(override, sizeof override, "data.system=%cx%cy%c", *blank, *blank, *blank);
        loads(&a, NULL, override);
        assert_ok(config_dump(&a, &first, &e), &e);
        loads(&b, first.data, NULL);
        assert_string_equal(strchr(override, '=') + 1, b.data.system);
        config_free(&a);
        config_free(&b);
    }
    str_free(&first);
}

static const char *param(const struct config *c, const char *section, const char *key)
{
    for (const struct config_param *p = c->params; p; p = p->next)
        if (!strcmp(p->section, section) && !strcmp(p->key, key)) return p->value;
    return "";
}

/* run.as sets the keys of a trainer's recipe, except those set in the same file or on the same
 * command line. */
static void as_another_trainer(void **state)
{
    (void)state;
    struct config c, again;
    struct err e = {0};
    struct str first = {0}, second = {0};
    loads(&c, "[loss]\nclip = 0.1\nkl = k1\n[estimator]\nplugin = rloo\n", "as=verl");
    assert_string_equal(c.estimator.plugin, "grpo");
    assert_string_equal(param(&c, "estimator.grpo", "convention"), "verl");
    assert_true(c.loss.clip == 0.2 && c.loss.dual_clip == 3 && c.loss.kl == KL_K3 && c.loss.aggregation == AGGREGATE_TOKEN);
    assert_string_equal(config_where(&c, "loss", "clip"), "run.as = verl, command line");
    assert_ok(config_dump(&c, &first, &e), &e);
    assert_non_null(strstr(first.data, "\nclip = 0.2 ; run.as = verl\n"));
    loads(&again, first.data, NULL); /* values that it set are in the file, and stay */
    assert_ok(config_dump(&again, &second, &e), &e);
    assert_true(again.run.as == AS_VERL && again.loss.dual_clip == 3 && again.loss.clip == 0.2);
    assert_null(strstr(second.data, "; run.as"));
    config_free(&again);
    config_free(&c);
    loads(&c, "[loss]\nclip = 0.1\n[run]\nas = openrlhf\n[estimator.grpo]\ndelta = 0.5\n", "loss.kl_coef=0");
    assert_true(c.loss.clip == 0.1 && c.loss.kl_coef == 0 && c.loss.kl_place == KL_IN_REWARD);
    assert_string_equal(param(&c, "estimator.grpo", "delta"), "0.5");
    config_free(&c);
    write_file("base.ini", "[run]\nas = verl\n[loss]\nclip = 0.1\n");
    loads(&c, "include = base.ini\n[run]\nas = nemo\n", NULL);
    assert_true(c.loss.clip == 0.2 && c.loss.dual_clip == 0 && c.loss.kl_coef == 0.01 && c.loss.kl_weight == KL_BY_SCORE);
    config_free(&c);
    refused(NULL, "as=foo", 0, "allowed: empty, verl, trl, nemo, openrlhf, slime");
    refused("[run]\nas = trl\n[loss]\nkl = exact\n", NULL, -1, "loss.kl_weight = ratio (run.as = trl, ");
    refused(NULL, "loss.kl_place=reward", -1, "set loss.kl = k1, k2 or k3");
    str_free(&first);
    str_free(&second);
}

static void every_key_is_sound(void **state)
{
    (void)state;
    for (const struct config_key *k = CONFIG_KEYS; k->section; k++) {
        assert_true(strlen(k->doc) > 20);
        for (const struct config_key *o = k + 1; o->section; o++) {
            assert_true(k->offset != o->offset);
            assert_true(strcmp(k->section, o->section) || strcmp(k->key, o->key));
        }
        const struct config_section *s = CONFIG_SECTIONS;
        while (s->name && strcmp(s->name, k->section)) s++;
        assert_non_null(s->name);
    }
}

/* docs/configuration.md equals the output of `tare config docs --md`. */
static void documentation_is_current(void **state)
{
    (void)state;
    const char *source = getenv("SOURCE");
    assert_non_null(source);
    char path[4096];
    snprintf(path, sizeof path, "%s/docs/configuration.md", source);
    struct str file = {0}, now = {0};
    struct err e = {0};
    assert_ok(fs_read_all(path, &file, &e), &e);
    assert_ok(config_docs(&now, true, &e), &e);
    if (strcmp(file.data, now.data)) fail_msg("docs/configuration.md is old; run `tare config docs --md > docs/configuration.md`");
    assert_ok(config_docs(&now, false, &e), &e);
    assert_non_null(strstr(now.data, "train.lr (default: 1e-6;"));
    str_free(&file);
    str_free(&now);
}

/* Any content of a file gives an error or a configuration, never a crash. */
static void damaged_files(void **state)
{
    (void)state;
    static const char GOOD[] =
        "include = none.ini\n[train]\nlr = 1e-4 ; x\n[data]\nsystem = \"a\\n\"\n[estimator.bv_blend]\ngamma=0.5\n";
    uint64_t x = 88172645463325252u;
    char text[sizeof GOOD];
    for (int round = 0; round < 3000; round++) {
        memcpy(text, GOOD, sizeof GOOD);
        for (int i = 0; i < 4; i++) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            text[x % (sizeof GOOD - 1)] = (char)(i ? "[]=\n\"\\;.0 "[(x >> 32) % 10] : (char)(x >> 40));
        }
        char path[300];
        snprintf(path, sizeof path, "%s/fuzz.ini", folder);
        FILE *f = fopen(path, "wb");
        assert_non_null(f);
        fwrite(text + 19, 1, sizeof GOOD - 20, f);
        fclose(f);
        struct config c;
        struct err e = {0};
        if (!config_load(&c, path, NULL, 0, &e)) {
            config_free(&c);
        } else {
            assert_true(strlen(e.message) > 10);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_for_a_first_run),
        cmocka_unit_test(file_then_command_line),
        cmocka_unit_test(plugin_parameters_from_the_command_line),
        cmocka_unit_test(encoders_and_codebooks_have_sections),
        cmocka_unit_test(differences_are_reported),
        cmocka_unit_test(the_starter_loads),
        cmocka_unit_test(includes),
        cmocka_unit_test(wrong_input_is_refused),
        cmocka_unit_test(lines_are_read_as_written),
        cmocka_unit_test(relations_name_both_keys),
        cmocka_unit_test(substitution),
        cmocka_unit_test(dump_loads_back),
        cmocka_unit_test(blanks_at_the_ends_stay),
        cmocka_unit_test(as_another_trainer),
        cmocka_unit_test(every_key_is_sound),
        cmocka_unit_test(documentation_is_current),
        cmocka_unit_test(damaged_files),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
