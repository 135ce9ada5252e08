/* An adapter's folder, as peft writes and reads it:
 *
 *   adapter_config.json         rank, alpha, targets, and the path of the base
 *   adapter_model.safetensors   base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight, ...
 *   base.json                   ours, not peft's: the hash of the base's weights and the values of its config.json, checked when it is opened
 *
 * What an adapter_config.json may ask for and the engine does not compute (DoRA, ranks by layer, biases, other methods than LoRA) is refused by name:
 * TARE_E_UNSUPPORTED. */
#ifndef TARE_CORE_MODEL_ADAPTER_H
#define TARE_CORE_MODEL_ADAPTER_H

#include "model/lora.h"

bool adapter_is(const char *folder);
/* What adapter_config.json says. base (FS_PATH bytes): the base's folder; c->base where it is set. */
tare_status adapter_config(const char *folder, const struct model_config *c, struct lora_spec *spec, char *base, struct err *e);
/* The folder that has config.json and tokenizer: the base of an adapter, else the folder itself. out: FS_PATH bytes */
tare_status adapter_base(const char *folder, const struct model_config *c, char *out, struct err *e);
/* TARE_E_CONFIG: model.base is set, and model.path is a whole model, which has no base. */
tare_status adapter_check_base(const struct model_config *c, struct err *e);
/* The folder of the tokenizer: the folder itself where it has one, else an adapter's base. out: FS_PATH bytes, another buffer */
tare_status adapter_tokenizer(const char *folder, const struct model_config *c, char *out, struct err *e);
/* TARE_E_CONFIG: the folder's adapter is of another base or spec than m's. */
tare_status adapter_check(const struct model *m, const char *folder, struct err *e);
/* The adapter's weights into m, whose spec is the folder's; TARE_E_CONFIG: of another base or spec. model_refresh comes after. */
tare_status adapter_read(struct model *m, const char *folder, struct err *e);
struct safetensors;
/* The tensors of a folder: an adapter's, or a model's. */
tare_status adapter_open(const char *folder, struct safetensors *out, struct err *e);
/* host[n_params]: the flat layout in host memory. Collective. */
tare_status adapter_fetch(struct model *m, float *host, struct err *e);
/* Collective; rank 0 writes. */
tare_status adapter_write(struct model *m, const char *folder, enum dtype dtype, struct err *e);

#endif
