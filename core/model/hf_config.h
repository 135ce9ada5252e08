/* config.json and generation_config.json of a Hugging Face folder: read into a model_shape, and
 * written back with unknown keys preserved. Old and new spellings are accepted: rope_theta,
 * rope_scaling {type | rope_type} and torch_dtype, or rope_parameters and dtype (transformers 5).
 * Unsupported settings (another architecture or activation, biases, other position scalings) are
 * refused by name with TARE_E_UNSUPPORTED. */
#ifndef TARE_CORE_MODEL_HF_CONFIG_H
#define TARE_CORE_MODEL_HF_CONFIG_H

#include "base/json.h"
#include "model/model.h"

/* text: the contents of config.json; where: its path, for messages. */
tare_status hf_config_shape(const char *text, int64_t n, const char *where, struct model_shape *out, struct err *e);
/* Does the same for parsed JSON. hf_shape.c defines the families. */
tare_status hf_shape(const json_t *j, const char *where, struct model_shape *out, struct err *e);
/* Returns a family's model_type, and sets its class in transformers (class_name may be NULL). */
const char *hf_family(enum arch arch, const char **class_name);
/* Values of config.json that the computation depends on and that the weights do not show, under
 * their names there. 0 where a value does not apply. */
/* The values after the first 9 are omitted from files where they are 0. */
enum { HF_VALUES = 19, HF_VALUES_ALWAYS = 9 };
struct hf_value {
    const char *key;
    double value;
};
void hf_config_values(const struct model_shape *s, struct hf_value out[HF_VALUES]);
/* TARE_E_CONFIG if one of these values differs between the folder's config.json and m. rope_theta
 * may differ where the configuration sets it. */
tare_status hf_config_check(const struct model *m, const char *folder, struct err *e);
/* Fills shape, config_json, folder, eos and n_eos of m from the folder, and applies the overrides
 * of c (may be NULL). */
tare_status hf_config_load(struct model *m, const char *folder, const struct model_config *c, struct err *e);
/* Fills shape and config_json for a new model; m->eos must be set. */
tare_status hf_config_new(struct model *m, const struct model_config *c, int64_t vocab, struct err *e);
/* Writes config.json and generation_config.json. */
tare_status hf_config_save(const struct model *m, const char *folder, enum dtype dtype, struct err *e);

#endif
