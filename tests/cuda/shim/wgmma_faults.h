/* Between the shim and its test. */
#ifndef TARE_SHIM_WGMMA_FAULTS_H
#define TARE_SHIM_WGMMA_FAULTS_H

/* For tests: a kernel in which one thing is wrong. */
enum wgmma_host_fault {
    WGMMA_SOUND,
    WGMMA_NOT_SWIZZLED, /* copies arrive as the tensor lies in memory */
    WGMMA_STRIDE,       /* a descriptor with half the distance between eight rows */
    WGMMA_NO_FENCE,     /* wgmma_fence is left out, */
    WGMMA_NO_WAIT,      /* or wgmma_wait, */
    WGMMA_EARLY,        /* or one stage is said to be free before it has been read, */
    WGMMA_NO_FULL,      /* or the wait of those who compute for a stage that is there, */
    WGMMA_NO_EMPTY,     /* or the wait of the one who loads for a stage that is free, */
    WGMMA_NO_ANNOUNCE,  /* or barriers_announce */
    WGMMA_BYTES,        /* fewer bytes are announced than come */
    WGMMA_LATER,        /* those who compute wait for a stage the first time alone, and no more when the ring has come round */
    WGMMA_WHOLE,        /* copies begin at a multiple of 64 k, though a slice does not */
    /* With mma_host_cuts: a unit whose sums are not those of mma. */
    WGMMA_NARROW,  /* they keep a bit less, */
    WGMMA_WIDE,    /* or a bit more, */
    WGMMA_HALVES,  /* or are two additions of 8 products, */
    WGMMA_FLUSHES, /* or take denormal factors for 0, */
    WGMMA_ROUNDS,  /* or are rounded to the nearest, */
    WGMMA_ZEROS,   /* or where a factor that is 0 counts as the smallest number when it is decided what is kept, */
    WGMMA_SIGN     /* or are -0 where all products are */
};

#endif
