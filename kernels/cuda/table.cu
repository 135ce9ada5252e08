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
    k->packed_bytes = cuda_packed_bytes;
    k->pack = cuda_pack;
    k->matmul = cuda_matmul;
    k->matmul_dx = cuda_matmul_dx;
    k->matmul_dx_packed = cuda_matmul_dx_packed;
    k->matmul_dw = cuda_matmul_dw;
    k->embed = cuda_embed;
    k->embed_grad = cuda_embed_grad;
    k->rmsnorm = cuda_rmsnorm;
    k->rmsnorm_grad = cuda_rmsnorm_grad;
    k->rope = cuda_rope;
    k->kv_bytes = cuda_kv_bytes;
    k->kv_write = cuda_kv_write;
    k->kv_copy = cuda_kv_copy;
    k->attention = cuda_attention;
    k->attention_grad = cuda_attention_grad;
    k->swiglu = cuda_swiglu;
    k->swiglu_grad = cuda_swiglu_grad;
    k->head_stats = cuda_head_stats;
    k->head_kl = cuda_head_kl;
    k->head_grad = cuda_head_grad;
    k->sample = cuda_sample;
    k->decode_open = cuda_decode_open;
    k->decode_close = cuda_decode_close;
    k->decode_load = cuda_decode_load;
    k->decode_begin = cuda_decode_begin;
    k->decode_end = cuda_decode_end;
    k->decode_read = cuda_decode_read;
    k->add = cuda_add;
    k->gather_rows = cuda_gather_rows;
    k->scatter_add_rows = cuda_scatter_add_rows;
    k->sum_squares = cuda_sum_squares;
    k->block_squares = cuda_block_squares;
    k->adamw = cuda_adamw;
}
