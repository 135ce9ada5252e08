/* The table of operations; see kernels.h. */
#include "cuda.h"

void cuda_table(struct kernels *k)
{
    *k = kernels();
    k->name = "cuda";
    k->device = 1;
    k->finish = cuda_finish;
    k->alloc = cuda_alloc;
    k->release = cuda_release;
    k->upload = cuda_upload;
    k->download = cuda_download;
    k->zero = cuda_zero;
    k->memory = cuda_memory;
    k->reserve = cuda_reserve;
    k->memory_use = cuda_memory_use;
    k->stream = cuda_own_stream;
#define CUDA_ENTRY(NAME) k->NAME = cuda_##NAME;
    KERNEL_OPERATIONS(CUDA_ENTRY)
#undef CUDA_ENTRY
    k->packed_bytes = cuda_packed_bytes;
    k->matmul_dx_packed = cuda_matmul_dx_packed;
    k->kv_bytes = cuda_kv_bytes;
    k->decode_open = cuda_decode_open;
    k->decode_close = cuda_decode_close;
    k->decode_load = cuda_decode_load;
    k->decode_begin = cuda_decode_begin;
    k->decode_end = cuda_decode_end;
    k->decode_read = cuda_decode_read;
}
