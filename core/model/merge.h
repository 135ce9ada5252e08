/* Merges an adapter into its base as one model with the weights W + s B A. */
#ifndef TARE_CORE_MODEL_MERGE_H
#define TARE_CORE_MODEL_MERGE_H

#include "model/model.h"

enum merge_dtype { MERGE_AS_BASE, MERGE_F32, MERGE_BF16 };

/* m is an adapter with its base, as model_open returns it. Writes a folder that transformers loads,
 * as model_save does; tensors of the base that the engine does not know are copied. Products are
 * summed in double and rounded once to the precision of the files. */
tare_status model_merge(struct model *m, const char *folder, enum merge_dtype dtype, const char *tokenizer_folder, struct err *e);

#endif
