/* shuffle: epoch after epoch over all rows, and everything is kept. The default.
 *
 *   rows of epoch t = a permutation of all rows by (run.seed, t)              data.shuffle = true
 *                     the order of the files                                   data.shuffle = false
 *
 * The plain order is the host's, so there is nothing to do: no next, no keep, no state.
 */
#include "common/curriculum.h"

enum { P_COUNT };
#define PARAMS NULL

CURRICULUM_STATELESS("shuffle", "epoch after epoch over all rows; everything is kept", NULL, 0, .flags = 0)
