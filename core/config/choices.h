/* The choices of keys that have a fixed set of values. The enum in struct config, the texts in
 * files and the documentation of the key are generated from these lists of X(constant, text), in
 * the order shown to the user.
 *
 * A text is compared only when a configuration is read; config_chosen (config.h) returns it for
 * messages. */
#ifndef TARE_CORE_CONFIG_CHOICES_H
#define TARE_CORE_CONFIG_CHOICES_H

#define CHOICES_DEVICE(X) X(RUN_CPU, "cpu") X(RUN_CUDA, "cuda")
#define CHOICES_KERNELS(X)                                                                                                         \
    X(KERNELS_AUTO, "auto")                                                                                                        \
    X(KERNELS_REF, "ref")                                                                                                          \
    X(KERNELS_AVX2, "avx2") X(KERNELS_AVX512, "avx512") X(KERNELS_AVX512BF16, "avx512bf16") X(KERNELS_NEON, "neon")
#define CHOICES_DETERMINISTIC(X) X(DETERMINISTIC_TRUE, "true") X(DETERMINISTIC_BATCH_INVARIANT, "batch_invariant")
#define CHOICES_AS(X)                                                                                                              \
    X(AS_NONE, "") X(AS_VERL, "verl") X(AS_TRL, "trl") X(AS_NEMO, "nemo") X(AS_OPENRLHF, "openrlhf") X(AS_SLIME, "slime")
#define CHOICES_PRECISION(X) X(PRECISION_F32, "f32") X(PRECISION_BF16, "bf16")
#define CHOICES_WEIGHTS(X) X(WEIGHTS_AS_DTYPE, "dtype") X(WEIGHTS_INT8, "int8")
#define CHOICES_SUMS(X) X(SUMS_PAIRS, "pairs") X(SUMS_TILES, "tiles")
#define CHOICES_SAVE(X) X(SAVE_AUTO, "auto") X(SAVE_F32, "f32") X(SAVE_BF16, "bf16")
#define CHOICES_INIT(X) X(INIT_NONE, "") X(INIT_QWEN2, "qwen2") X(INIT_LLAMA, "llama") X(INIT_QWEN3, "qwen3")
#define CHOICES_PROMPT(X) X(PROMPT_CHAT, "chat") X(PROMPT_PLAIN, "plain")
#define CHOICES_OVERLONG(X) X(OVERLONG_NONE, "none") X(OVERLONG_ZERO, "zero") X(OVERLONG_LINEAR, "linear")
#define CHOICES_OPENED(X) X(OPENED_AUTO, "auto") X(OPENED_TRUE, "true") X(OPENED_FALSE, "false")
#define CHOICES_PROCESS_NORM(X) X(PROCESS_NORM_LARGEST, "largest") X(PROCESS_NORM_NONE, "none")
#define CHOICES_CALLS(X)                                                                                                           \
    X(CALLS_AUTO, "auto") X(CALLS_NONE, "none") X(CALLS_HERMES, "hermes") X(CALLS_LLAMA, "llama") X(CALLS_XML, "xml")
#define CHOICES_ISOLATE(X) X(ISOLATE_THREAD, "thread") X(ISOLATE_PROCESS, "process")
#define CHOICES_CONFINE(X) X(CONFINE_TRY, "try") X(CONFINE_REQUIRE, "require") X(CONFINE_OFF, "off")
#define CHOICES_AGGREGATION(X) X(AGGREGATE_SEQUENCE, "sequence") X(AGGREGATE_TOKEN, "token") X(AGGREGATE_CONSTANT, "constant")
#define CHOICES_KL(X) X(KL_EXACT, "exact") X(KL_K1, "k1") X(KL_K2, "k2") X(KL_K3, "k3")
#define CHOICES_KL_WEIGHT(X) X(KL_PLAIN, "none") X(KL_BY_SCORE, "score") X(KL_BY_RATIO, "ratio")
#define CHOICES_KL_PLACE(X) X(KL_IN_LOSS, "loss") X(KL_IN_REWARD, "reward")
#define CHOICES_OLD_LOGPROBS(X) X(OLD_SAMPLER, "sampler") X(OLD_RECOMPUTE, "recompute")
#define CHOICES_ROLLOUT_IS(X) X(ROLLOUT_IS_NONE, "none") X(ROLLOUT_IS_TIS, "tis")
#define CHOICES_SCHEDULE(X) X(SCHEDULE_COSINE, "cosine") X(SCHEDULE_CONSTANT, "constant") X(SCHEDULE_LINEAR, "linear")
#define CHOICES_RECOMPUTE(X)                                                                                                       \
    X(RECOMPUTE_NONE, "none") X(RECOMPUTE_NORMS, "norms") X(RECOMPUTE_MLP, "mlp") X(RECOMPUTE_LAYER, "layer")
#define CHOICES_NONFINITE(X) X(NONFINITE_STOP, "stop") X(NONFINITE_SKIP, "skip") X(NONFINITE_ROLLBACK, "rollback")
#define CHOICES_LORA_TARGET(X)                                                                                                     \
    X(LORA_Q_PROJ, "q_proj")                                                                                                       \
    X(LORA_K_PROJ, "k_proj")                                                                                                       \
    X(LORA_V_PROJ, "v_proj")                                                                                                       \
    X(LORA_O_PROJ, "o_proj")                                                                                                       \
    X(LORA_GATE_PROJ, "gate_proj")                                                                                                 \
    X(LORA_UP_PROJ, "up_proj") X(LORA_DOWN_PROJ, "down_proj") X(LORA_QKV_PROJ, "qkv_proj") X(LORA_GATE_UP_PROJ, "gate_up_proj")
#define CHOICES_COMMUNICATOR(X) X(COMMUNICATOR_AUTO, "auto") X(COMMUNICATOR_MPI, "mpi") X(COMMUNICATOR_NCCL, "nccl")
#define CHOICES_SHARD(X) X(SHARD_ZERO3, "zero3") X(SHARD_ZERO1, "zero1") X(SHARD_NONE, "none")
#define CHOICES_LEVEL(X) X(LEVEL_DEBUG, "debug") X(LEVEL_INFO, "info") X(LEVEL_WARN, "warn") X(LEVEL_ERROR, "error")
#define CHOICES_PROGRESS(X) X(PROGRESS_AUTO, "auto") X(PROGRESS_BAR, "bar") X(PROGRESS_LINES, "lines") X(PROGRESS_NONE, "none")

#define CHOICE_CONSTANT(ID, TEXT) ID,
enum device_choice { CHOICES_DEVICE(CHOICE_CONSTANT) };
enum kernels_choice { CHOICES_KERNELS(CHOICE_CONSTANT) };
enum deterministic { CHOICES_DETERMINISTIC(CHOICE_CONSTANT) };
enum run_as { CHOICES_AS(CHOICE_CONSTANT) };
enum call_syntax { CHOICES_CALLS(CHOICE_CONSTANT) };
enum precision { CHOICES_PRECISION(CHOICE_CONSTANT) };
enum weights { CHOICES_WEIGHTS(CHOICE_CONSTANT) };
enum bf16_sums { CHOICES_SUMS(CHOICE_CONSTANT) };
enum save_dtype { CHOICES_SAVE(CHOICE_CONSTANT) };
enum model_init { CHOICES_INIT(CHOICE_CONSTANT) };
enum prompt_form { CHOICES_PROMPT(CHOICE_CONSTANT) };
enum opened { CHOICES_OPENED(CHOICE_CONSTANT) };
enum overlong { CHOICES_OVERLONG(CHOICE_CONSTANT) };
enum process_norm { CHOICES_PROCESS_NORM(CHOICE_CONSTANT) };
enum isolate { CHOICES_ISOLATE(CHOICE_CONSTANT) };
enum confine_mode { CHOICES_CONFINE(CHOICE_CONSTANT) };
enum aggregation { CHOICES_AGGREGATION(CHOICE_CONSTANT) };
enum kl_form { CHOICES_KL(CHOICE_CONSTANT) };
enum kl_weight { CHOICES_KL_WEIGHT(CHOICE_CONSTANT) };
enum kl_place { CHOICES_KL_PLACE(CHOICE_CONSTANT) };
enum old_logprobs { CHOICES_OLD_LOGPROBS(CHOICE_CONSTANT) };
enum rollout_is { CHOICES_ROLLOUT_IS(CHOICE_CONSTANT) };
enum schedule { CHOICES_SCHEDULE(CHOICE_CONSTANT) };
enum recompute { CHOICES_RECOMPUTE(CHOICE_CONSTANT) };
enum on_nonfinite { CHOICES_NONFINITE(CHOICE_CONSTANT) };
enum lora_target { CHOICES_LORA_TARGET(CHOICE_CONSTANT) LORA_KINDS };
enum communicator { CHOICES_COMMUNICATOR(CHOICE_CONSTANT) };
enum shard { CHOICES_SHARD(CHOICE_CONSTANT) };
enum level { CHOICES_LEVEL(CHOICE_CONSTANT) };
enum progress_form { CHOICES_PROGRESS(CHOICE_CONSTANT) };
#undef CHOICE_CONSTANT

#endif
