/* AVX-512: 12 rows by one vector of sixteen. */
#if defined(__x86_64__)
#include <immintrin.h>
typedef int avx512_ivec __attribute__((vector_size(64)));
#define TARGET __attribute__((target("avx512f")))
#define VEC __m512
#define IVEC avx512_ivec
#define WIDTH 16
#define FMA(A, B, C) _mm512_fmadd_ps((A), (B), (C))
#define MAX(A, B) _mm512_max_ps((A), (B))
#define ROWS 12
#define TABLE BERT_AVX512
#define KERNELS_NAME "avx512"
#include "kernels_body.h"
#else
typedef int kernels_avx512_unused;
#endif
