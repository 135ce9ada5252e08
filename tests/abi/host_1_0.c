/* A host of plugin ABI 1.0, built against its released headers: opens an estimator, and computes the advantages of one group with the rewards 1
 * and 0. A plugin that needs a later minor version is refused, as the contract asks of every host. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tare/plugin.h>

static void say(void *ctx, int32_t level, const char *message)
{
    (void)ctx, (void)level, (void)message;
}
static void *take(void *ctx, int64_t size, int64_t align)
{
    (void)ctx, (void)align;
    return calloc(1, (size_t)size);
}
static void give(void *ctx, void *memory)
{
    (void)ctx;
    free(memory);
}
static tare_status draw(void *ctx, uint64_t stream, uint64_t counter, uint32_t *out, int64_t n)
{
    (void)ctx, (void)stream, (void)counter;
    for (int64_t i = 0; i < n; i++) out[i] = 4;
    return TARE_OK;
}
static void show(void *ctx, const char *name, double value)
{
    (void)ctx, (void)name, (void)value;
}
static int32_t never(void *ctx)
{
    (void)ctx;
    return 0;
}
static const void *nothing(void *ctx, const char *id)
{
    (void)ctx, (void)id;
    return NULL;
}

int main(int argc, char **argv)
{
    const tare_host host = {sizeof host, TARE_ABI_MINOR, NULL, say, take, give, draw, show, never, nothing};
    tare_error error = {.struct_size = sizeof error};
    void *file = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL, *self;
    const tare_plugin *(*entry)(const tare_host *, tare_error *) = NULL;
    if (file) *(void **)&entry = dlsym(file, "tare_plugin_v1");
    const tare_plugin *plugin = entry ? entry(&host, &error) : NULL;
    if (!plugin) return printf("not a plugin\n"), 1;
    if (plugin->abi_minor_needed > TARE_ABI_MINOR) return printf("refused: needs ABI 1.%u\n", plugin->abi_minor_needed), 0;
    const tare_estimator *t = plugin->descriptors[0]->functions;
    const tare_value value = {.f = 2};
    const int64_t group[] = {0, 2}, token[] = {0, 1, 2};
    const uint64_t uid = 7;
    const int32_t cluster = -1, verdict[] = {1, 2};
    const double reward[] = {1, 0}, prepared[] = {2};
    double advantage[2], weight[] = {1, 1}, baseline, scale, confidence;
    const tare_batch batch = {sizeof batch, 0,        0,      1,    2,       2,     0,    0,    group,
                              &uid,         &cluster, reward, NULL, verdict, token, NULL, NULL, NULL};
    tare_advantages out = {sizeof out, 0, advantage, weight, &baseline, &scale, &confidence, NULL, 0};
    if (t->create(&host, &value, 0, &self, &error)) return printf("create: %s\n", error.message), 1;
    if (t->compute(self, &batch, prepared, &out, &error)) return printf("compute: %s\n", error.message), 1;
    printf("advantages %g %g\n", advantage[0], advantage[1]);
    t->destroy(self);
    return 0;
}
