/* Graphs of the shim: a list of launches, copies and fills with their arguments as recorded. */
#include "internal.h"

#include "fault.h"

#include <vector>

enum node_kind { LAUNCH, COPY, FILL };

struct node {
    enum node_kind kind;
    struct shim_kept_launch launch;
    std::vector<unsigned char> args;
    void *to;
    const void *from;
    int value;
    size_t bytes;
};

struct shim_graph {
    std::vector<node> nodes;
};

static struct shim_graph *capture; /* NULL: none */

bool shim_keep_launch(const struct shim_kept_launch &launch, const void *args)
{
    if (!capture) return false;
    node n = {};
    n.kind = LAUNCH, n.launch = launch;
    n.args.assign((const unsigned char *)args, (const unsigned char *)args + launch.args_bytes);
    capture->nodes.push_back(n);
    return true;
}

bool shim_keep_copy(void *to, const void *from, size_t bytes)
{
    if (!capture) return false;
    node n = {};
    n.kind = COPY, n.to = to, n.from = from, n.bytes = bytes;
    capture->nodes.push_back(n);
    return true;
}

bool shim_keep_fill(void *p, int value, size_t bytes)
{
    if (!capture) return false;
    node n = {};
    n.kind = FILL, n.to = p, n.value = value, n.bytes = bytes;
    capture->nodes.push_back(n);
    return true;
}

bool shim_refuses(const char *call)
{
    if (capture) shim_report("%s during a capture", call);
    return capture != NULL;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t, enum cudaStreamCaptureMode)
{
    if (shim_refuses("cudaStreamBeginCapture")) return cudaErrorLaunchFailure;
    capture = new shim_graph;
    return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t, enum cudaStreamCaptureStatus *status)
{
    *status = capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t *graph)
{
    *graph = capture;
    capture = NULL;
    return *graph ? cudaSuccess : cudaErrorLaunchFailure;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *run, cudaGraph_t graph, unsigned long long)
{
    *run = new shim_graph(*graph);
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t run, cudaStream_t)
{
    for (node &n : run->nodes) {
        if (n.kind == COPY) memmove(n.to, n.from, n.bytes);
        if (n.kind == FILL) memset(n.to, n.value, n.bytes);
        if (n.kind != LAUNCH || kernel_faulted(&n.launch.context)) continue;
        const struct shim_kept_launch &l = n.launch;
        shim_follows = l.follows;
        shim_run(&l.context, l.kernel, l.grid, l.block, l.shared, l.thread, n.args.data(), l.args_bytes);
    }
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    delete graph;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t run)
{
    delete run;
    return cudaSuccess;
}
