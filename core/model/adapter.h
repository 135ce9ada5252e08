/* The folder of an adapter, as peft writes and reads it:
 *
 *   adapter_config.json         rank, alpha, targets, and the path of the base
 *   adapter_model.safetensors   base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight, ...
 *   base.json                   by tare, not by peft: the hash of the base's weights and the values
 *                               of its config.json, checked when the adapter is opened
 *
 * Settings of adapter_config.json that the engine does not support (DoRA, ranks by layer, biases,
 * methods other than LoRA) are refused by name with TARE_E_UNSUPPORTED. */
#ifndef TARE_CORE_MODEL_ADAPTER_H
#define TARE_CORE_MODEL_ADAPTER_H

#include "model/lora.h"

bool adapter_is(const char *folder);
/* Reads adapter_config.json. base (FS_PATH bytes) receives the base's folder: c->base where it is
 * set. */
tare_status adapter_config(const char *folder, const struct model_config *c, struct lora_spec *spec, char *base, struct err *e);
/* Finds the folder with config.json and tokenizer: the base of an adapter, otherwise the folder
 * itself. out: FS_PATH bytes */
tare_status adapter_base(const char *folder, const struct model_config *c, char *out, struct err *e);
/* TARE_E_CONFIG if model.base is set although model.path is a whole model, which has no base. */
tare_status adapter_check_base(const struct model_config *c, struct err *e);
/* Finds the folder of the tokenizer: the folder itself if it has one, otherwise an adapter's base.
 * out: FS_PATH bytes, not the same buffer as folder */
tare_status adapter_tokenizer(const char *folder, const struct model_config *c, char *out, struct err *e);
/* TARE_E_CONFIG if the folder's adapter has another base or spec than m. */
tare_status adapter_check(const struct model *m, const char *folder, struct err *e);
/* Reads the adapter's weights into m, which must have the folder's spec; TARE_E_CONFIG for another
 * base or spec. Call model_refresh afterwards. */
tare_status adapter_read(struct model *m, const char *folder, struct err *e);
struct safetensors;
/* Opens the tensors of a folder, of an adapter or of a whole model. */
tare_status adapter_open(const char *folder, struct safetensors *out, struct err *e);
/* Copies the flat layout to host[n_params]. Collective. */
tare_status adapter_fetch(struct model *m, float *host, struct err *e);
/* Collective; rank 0 writes. */
tare_status adapter_write(struct model *m, const char *folder, enum dtype dtype, struct err *e);

#endif
