/* config.json and generation_config.json of a Hugging Face folder: read into a model_shape, written back with unknown keys kept.
 * Old and new spellings are read: rope_theta, rope_scaling {type | rope_type} and torch_dtype, or rope_parameters and dtype (transformers 5).
 * What the engine does not compute (another architecture or activation, biases, other position scalings) is refused by name:
 * TARE_E_UNSUPPORTED. */
#ifndef TARE_CORE_MODEL_HF_CONFIG_H
#define TARE_CORE_MODEL_HF_CONFIG_H

#include "base/json.h"
#include "model/model.h"

/* text: the contents of config.json; where: its path, for messages. */
tare_status hf_config_shape(const char *text, int64_t n, const char *where, struct model_shape *out, struct err *e);
/* The same of a parsed file (hf_shape.c), where the families and what they have stand. */
tare_status hf_shape(const json_t *j, const char *where, struct model_shape *out, struct err *e);
/* A family's model_type, and its class in transformers (may be NULL). */
const char *hf_family(enum arch arch, const char **class_name);
/* What config.json says that the computation depends on and the weights do not show, by the names that it has there. 0 where it does not apply. */
enum { HF_VALUES = 19, HF_VALUES_ALWAYS = 9 }; /* those after the first 9 are left out of files where they are 0 */
struct hf_value {
    const char *key;
    double value;
};
void hf_config_values(const struct model_shape *s, struct hf_value out[HF_VALUES]);
/* TARE_E_CONFIG: one of these values is another one in the folder's config.json than in m; rope_theta may be, where the configuration sets it. */
tare_status hf_config_check(const struct model *m, const char *folder, struct err *e);
/* Fills shape, config_json, folder, eos and n_eos of m from the folder, and applies the overrides of c (may be NULL). */
tare_status hf_config_load(struct model *m, const char *folder, const struct model_config *c, struct err *e);
/* Fills shape and config_json for a new model (m->eos is set already). */
tare_status hf_config_new(struct model *m, const struct model_config *c, int64_t vocab, struct err *e);
/* Writes config.json and generation_config.json. */
tare_status hf_config_save(const struct model *m, const char *folder, enum dtype dtype, struct err *e);

#endif
