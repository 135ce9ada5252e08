/* A base and its adapter as one model: W + s B A in place of W. */
#ifndef TARE_CORE_MODEL_MERGE_H
#define TARE_CORE_MODEL_MERGE_H

#include "model/model.h"

enum merge_dtype { MERGE_AS_BASE, MERGE_F32, MERGE_BF16 };

/* m: an adapter with its base, as model_open gives it. Writes a folder that transformers loads, as model_save does; tensors of the base that the engine
 * does not know are copied. Sums are made in double and rounded once to the precision of the files. */
tare_status model_merge(struct model *m, const char *folder, enum merge_dtype dtype, const char *tokenizer_folder, struct err *e);

#endif
