/* Fills the table of operations (kernels.h). */
#include "cuda.h"

static const struct backend *cuda_backend(void)
{
    static struct backend b;
    b.device = 1;
    b.finish = cuda_finish;
    b.alloc = cuda_alloc;
    b.release = cuda_release;
    b.upload = cuda_upload;
    b.download = cuda_download;
    b.zero = cuda_zero;
    b.memory = cuda_memory;
    b.reserve = cuda_reserve;
    b.memory_use = cuda_memory_use;
    b.stream = cuda_own_stream;
    b.about = cuda_about;
    b.logits_floats = DEVICE_LOGITS_FLOATS;
    b.cache_most = cuda_cache_most;
    return &b;
}

void cuda_table(struct kernels *k)
{
    *k = kernels();
    k->name = "cuda";
    k->backend = cuda_backend();
    k->bf16_rows = 1;
#define CUDA_ENTRY(NAME) k->NAME = cuda_##NAME;
    KERNEL_OPERATIONS(CUDA_ENTRY)
#undef CUDA_ENTRY
    k->packed_bytes = cuda_packed_bytes;
    k->matmul_dw_apart = cuda_matmul_dw_apart;
    k->kv_bytes = cuda_kv_bytes;
    k->rope_kv_write = cuda_rope_kv_write;
    k->matmul_swiglu = cuda_matmul_swiglu;
    k->matmul_rmsnorm = cuda_matmul_rmsnorm;
    k->decode_open = cuda_decode_open;
    k->decode_close = cuda_decode_close;
    k->decode_load = cuda_decode_load;
    k->decode_begin = cuda_decode_begin;
    k->decode_end = cuda_decode_end;
    k->decode_read = cuda_decode_read;
}
