/* NEON: 6 rows by 4 vectors of four. */
#if defined(__aarch64__)
#include <arm_neon.h>
#define TARGET
#define VEC float32x4_t
#define IVEC int32x4_t
#define WIDTH 4
#define FMA(A, B, C) vfmaq_f32((C), (A), (B))
/* the second where either is NaN, as on x86 */
#define MAX(A, B) vbslq_f32(vcgtq_f32((A), (B)), (A), (B))
#define ROWS 6
#define TABLE BERT_NEON
#define KERNELS_NAME "neon"
#include "kernels_body.h"
#else
typedef int kernels_neon_unused;
#endif
