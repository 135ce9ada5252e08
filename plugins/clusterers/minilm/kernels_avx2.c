/* AVX2 with FMA: 6 rows by 2 vectors of eight. */
#if defined(__x86_64__)
#include <immintrin.h>
typedef int avx2_ivec __attribute__((vector_size(32)));
#define TARGET __attribute__((target("avx2,fma")))
#define VEC __m256
#define IVEC avx2_ivec
#define WIDTH 8
#define FMA(A, B, C) _mm256_fmadd_ps((A), (B), (C))
#define MAX(A, B) _mm256_max_ps((A), (B))
#define ROWS 6
#define TABLE BERT_AVX2
#define KERNELS_NAME "avx2"
#include "kernels_body.h"
#else
typedef int kernels_avx2_unused;
#endif
