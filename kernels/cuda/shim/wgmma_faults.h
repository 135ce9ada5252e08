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
    WGMMA_NARROW        /* the unit's sums keep a bit less than those of mma, with mma_host_cuts */
};

#endif
