/* Interface between the shim and its test. */
#ifndef TARE_SHIM_WGMMA_FAULTS_H
#define TARE_SHIM_WGMMA_FAULTS_H

/* For tests: a kernel with one fault. */
enum wgmma_host_fault {
    WGMMA_SOUND,
    WGMMA_NOT_SWIZZLED, /* copies arrive in the order of the tensor */
    WGMMA_STRIDE,       /* a descriptor with half the distance between eight rows */
    WGMMA_NO_FENCE,     /* wgmma_fence is missing */
    WGMMA_NO_WAIT,      /* wgmma_wait is missing */
    WGMMA_EARLY,        /* one stage is released before it has been read */
    WGMMA_NO_FULL,      /* consumers do not wait for a full stage */
    WGMMA_NO_EMPTY,     /* the producer does not wait for a free stage */
    WGMMA_NO_ANNOUNCE,  /* barriers_announce is missing */
    WGMMA_BYTES,        /* fewer bytes are announced than arrive */
    /* consumers wait for a stage only the first time, not after the ring has wrapped */
    WGMMA_LATER,
    WGMMA_WHOLE, /* copies begin at a multiple of 64 k, although a slice does not */
    /* With mma_host_cuts: a unit whose sums differ from those of mma. */
    WGMMA_NARROW,  /* they keep one bit less */
    WGMMA_WIDE,    /* they keep one bit more */
    WGMMA_HALVES,  /* they are two additions of 8 products */
    WGMMA_FLUSHES, /* denormal factors are treated as 0 */
    WGMMA_ROUNDS,  /* they are rounded to nearest */
    WGMMA_ZEROS,   /* a factor 0 counts as the smallest number when the kept bits are chosen */
    WGMMA_SIGN     /* they are -0 if all products are */
};

#endif
