#include "config/keys.h"

#define BOOL(S, K, FALLBACK, DOC)                                                                                                  \
    {                                                                                                                              \
#S, #K, KEY_BOOL, offsetof(struct config, S.K), FALLBACK, 0, 0, 0, NULL, DOC                                               \
    }
#define INT(S, K, FALLBACK, MIN, MAX, DOC)                                                                                         \
    {                                                                                                                              \
#S, #K, KEY_INT, offsetof(struct config, S.K), FALLBACK, MIN, MAX, 0, NULL, DOC                                            \
    }
#define REAL(S, K, FALLBACK, MIN, MAX, FLAGS, DOC)                                                                                 \
    {                                                                                                                              \
#S, #K, KEY_FLOAT, offsetof(struct config, S.K), FALLBACK, MIN, MAX, FLAGS, NULL, DOC                                      \
    }
#define TEXT(S, K, FALLBACK, DOC)                                                                                                  \
    {                                                                                                                              \
#S, #K, KEY_TEXT, offsetof(struct config, S.K), FALLBACK, 0, 0, 0, NULL, DOC                                               \
    }
#define CHOICE_TEXT(ID, TEXT) TEXT,
#define ENUM_OFFSET(S, K) (offsetof(struct config, S.K) / (sizeof(((struct config *)0)->S.K) == sizeof(int) ? 1 : 0))
#define CHOICE(S, K, FALLBACK, CHOICES, DOC)                                                                                       \
    {                                                                                                                              \
#S, #K, KEY_CHOICE, ENUM_OFFSET(S, K), FALLBACK, 0, 0, 0, (const char *const[]){CHOICES(CHOICE_TEXT) NULL }, DOC           \
    }

#define MANY 1e15 /* no limit for a count; exact as a double */
#define BIG 1e30

const struct config_section CONFIG_SECTIONS[] = {
    {"run", "The run itself: where it is written, what it is computed on, and the seed of everything random."},
    {"model", "The policy: a Hugging Face folder, or the shape of a new model."},
    {"data", "The questions, and how a question becomes a prompt."},
    {"curriculum",
     "Which rows come next, how many rollouts each, and what of a finished group is kept: a plugin. Its own parameters go under [curriculum.NAME]."},
    {"rollout", "One step's rollouts: M prompts with G sampled completions each."},
    {"verifier", "How completions are rewarded. A plugin's own parameters go under [verifier.NAME]."},
    {"clusterer",
     "How a question gets its cluster k = argmin_j |E(q) - c_j|^2. Parameters of the plugins go under [clusterer.NAME]."},
    {"estimator", "How rewards become advantages. The plugin's own parameters go under [estimator.NAME]."},
    {"objective", "How the advantages enter the loss of a token: a plugin. The plugin's own parameters go under [objective.NAME]."},
    {"loss",
     "What is common to the objectives: means over tokens, clipping, the KL penalty, the entropy bonus, old probabilities."},
    {"train", "The optimizer and its schedule."},
    {"lora", "Low-rank adapters in place of all weights (docs/lora.md)."},
    {"process_reward",
     "Rewards of single tokens from an implicit process reward model that is trained with the policy (PRIME, docs/prime.md)."},
    {"relift",
     "Supervised updates between policy updates, on demonstrations of the questions that no rollout solved (ReLIFT, docs/relift.md)."},
    {"sft", "Supervised training (`tare sft`): the warm start, and the baseline."},
    {"dist", "Several processes."},
    {"eval", "Evaluation on held-out questions."},
    {"checkpoint", "What is saved, and how often: in run.dir, and by `tare sft` in SFT.OUT.training until the model is written."},
    {"log", "What is recorded besides checkpoints."},
    {0},
};

const struct config_key CONFIG_KEYS[] =
    {
        TEXT(
            run, dir, "runs/${run.name}",
            "Folder of the run. One folder holds one run: a folder that has one is refused unless --resume is given. The run database is next to it."),
        TEXT(run, name, "", "Name in tables and in the run database. Empty: the configuration file's name without .ini."),
        {"run", "plugins", KEY_TEXT, offsetof(struct config, run.plugins), "", 0, 0, KEY_FILE_RELATIVE, NULL,
         "Folder with plugins of your own, searched after those of TARE_PLUGIN_PATH. Relative to the folder of the file that sets it. Empty: plugins/ next to the configuration, if it exists. A run records it, so that --resume finds the same plugins."},
        CHOICE(
            run, as, "", CHOICES_AS,
            "Whose conventions hold: the keys of estimator, objective and loss that this trainer's GRPO stands for (docs/recipes.md). On the command line also as=NAME. A key that the same file, or the same command line, sets goes before it; those of an included file do not. `tare config dump` marks what it set. Empty: ours."),
        CHOICE(run, device, "cpu", CHOICES_DEVICE, "What the model is computed on. cuda needs libtare_cuda.so and a GPU."),
        CHOICE(
            run, kernels, "auto", CHOICES_KERNELS,
            "Kernels of the CPU. auto takes the best that this processor has; ref is the plain C that defines every operation, slow."),
        INT(run, seed, "0", 0, MANY,
            "Seed of everything random: prompt order, sampling, minibatches, initial weights. The same seed gives the same bits, whatever the number of threads."),
        INT(run, threads, "0", 0, 4096, "Threads of this process. 0: one for each core it may use. Never changes a result."),
        CHOICE(
            run, deterministic, "true", CHOICES_DETERMINISTIC,
            "true: operations sum in a fixed order, so a run repeats bit for bit. batch_invariant: also the same bits of a row's logits in every batch, so what sampling and update compute agrees exactly; always so on the CPU; on a GPU it is slower. Applies to train, sft, eval and generate."),

        TEXT(model, path, "",
             "Hugging Face folder of the policy that training starts from (config.json, model*.safetensors, tokenizer.json)."),
        TEXT(
            model, reference, "",
            "Folder of the frozen reference policy of the KL term, and of the teacher of the estimator opd. It may have another shape, with the policy's tokenizer. Empty: the policy that training starts from."),
        TEXT(model, base, "",
             "Folder of the base model, when model.path is an adapter. Empty: the one that its adapter_config.json names."),
        {"model", "warm_start", KEY_TEXT, offsetof(struct config, model.warm_start), "", 0, 0, KEY_FILE_RELATIVE, NULL,
         "Configuration for `tare sft` that makes model.path when it is absent. Relative to the folder of the file that sets it."},
        CHOICE(
            model, dtype, "f32", CHOICES_PRECISION,
            "Precision of products, keys and values in the forward and backward pass. Master weights, gradient sums and the optimizer are always f32."),
        CHOICE(
            model, bf16_sums, "pairs", CHOICES_SUMS,
            "In which order products in bf16 add, on the CPU. pairs: as the dot product of AVX-512 does. tiles: as AMX does, in blocks of 32; several times as fast where the processor has AMX, slower than pairs on others, with other bits than pairs and the same on all of them."),
        CHOICE(
            model, weights, "dtype", CHOICES_WEIGHTS,
            "How weights that are not trained are kept: the base of adapters (lora.rank above 0), and the model of eval, generate, score, chat and serve. dtype: in model.dtype. int8: by blocks of 32 with a bf16 scale each, a half of bf16's bytes; sampling and update read the same numbers. On the CPU only."),
        CHOICE(
            model, save_dtype, "auto", CHOICES_SAVE,
            "Precision of the weights in saved checkpoints. auto: as in model.path (a resumed run reads its f32 master weights from the optimizer state)."),
        REAL(model, rope_theta, "0", 0, BIG, 0,
             "Base of the rotary embedding, in place of the one in config.json, and written on export. 0: as config.json says."),
        INT(model, max_position_embeddings, "0", 0, MANY,
            "Longest context, in place of the one in config.json, and written on export. 0: as config.json says."),
        CHOICE(model, init, "", CHOICES_INIT,
               "Architecture of a new model with random weights, used when model.path does not exist. Empty: never make one."),
        INT(model, hidden_size, "128", 1, MANY, "Width C of a new model."),
        INT(model, layers, "2", 1, MANY, "Layers L of a new model."),
        INT(model, heads, "4", 1, MANY, "Query heads H of a new model."),
        INT(model, kv_heads, "2", 1, MANY, "Key and value heads of a new model; divides heads."),
        INT(model, head_dim, "0", 0, MANY, "Width D of a head of a new model. 0: hidden_size / heads."),
        INT(model, intermediate_size, "384", 1, MANY, "Inner width of the feed-forward part of a new model."),
        INT(model, context, "1024", 2, MANY, "Longest context of a new model, in tokens."),
        BOOL(model, tie_embeddings, "true", "Whether a new model's output head is its embedding."),
        REAL(
            model, init_std, "0.02", 0, 10, KEY_ABOVE_MIN,
            "Standard deviation of a new model's normal weights; those that write to the residual stream get 1/sqrt(2 L) of it. Narrow models learn faster with a larger one: about 1/sqrt(hidden_size)."),

        TEXT(
            data, train, "",
            "Training rows: JSONL with id, question, answer (and completion for `tare sft`); prompt or messages may take the place of question, as in TRL. One file, several with commas between them, patterns such as data/part-?.jsonl, or builtin:arithmetic/SPLIT."),
        TEXT(data, eval, "", "Held-out rows, in the same form."),
        CHOICE(data, prompt, "chat", CHOICES_PROMPT,
               "chat renders the question through the model's chat template; plain takes it as it is."),
        TEXT(data, chat_template, "", "File with a chat template (Jinja) in place of the model's own."),
        TEXT(
            data, date, "",
            "Date that a chat template may write into the prompt (strftime_now; Llama 3.2 does), as 2026-11-22. Empty: today's in UTC, recorded with the run, so that a prompt does not change at midnight or on --resume."),
        TEXT(data, system, "", "System message in front of every chat."),
        TEXT(data, suffix, "", "Text after every question, such as \"\\nPut the final answer in \\\\boxed{}.\""),
        BOOL(data, shuffle, "true", "Draw a new order of the rows in every epoch, from run.seed. false: the file's order."),
        BOOL(data, permute_choices, "true",
             "Put the options of every multiple-choice question in an order of its own, and remap the letter of its answer."),
        INT(data, permute_seed, "0", 0, MANY,
            "Seed of that order. The same for every run.seed, so that models see the same questions."),
        INT(data, limit, "0", 0, MANY, "Use only the first rows. 0: all."),

        TEXT(
            curriculum, plugin, "shuffle",
            "Name of the curriculum (`tare plugin list`), or a file. shuffle: epoch after epoch over all rows (data.shuffle), and everything is kept."),

        INT(rollout, prompts, "16", 1, MANY, "Prompts M of a step (the paper's 16)."),
        INT(rollout, group_size, "8", 1, MANY,
            "Rollouts G of a prompt (the paper's 8). A group of one has no spread: group-relative estimators give it advantage 0."),
        INT(rollout, max_new_tokens, "0", 0, MANY,
            "Longest completion, in tokens; one that reaches it ends with finish = length. 0: half of the model's context, at most 512."),
        INT(rollout, max_prompt_tokens, "1024", 1, MANY,
            "Longest prompt, in tokens. A row with a longer one is refused by name before training starts."),
        INT(rollout, batch, "0", 0, MANY, "Sequences that are sampled at the same time, at most. 0: 256. Never changes the text."),
        INT(rollout, refill_rounds, "10", 0, 1000,
            "How often in a step groups that the estimator or the curriculum dropped are replaced by newly sampled ones (dynamic sampling, DAPO), or a curriculum has further ones sampled. 0: never. No effect where nothing is asked for."),
        INT(rollout, kv_tokens, "0", 0, MANY, "Capacity of the KV cache in tokens. 0: what rollout.batch sequences need."),
        REAL(rollout, temperature, "1", 0, 1000, 0,
             "Sampling temperature. pi and pi_old in the loss are the softmax at this temperature. 0: greedy (not for training)."),
        REAL(
            rollout, top_p, "1", 0, 1, KEY_ABOVE_MIN,
            "Sample from the smallest set of tokens with at least this probability. 1: off. Logprobs are still those of the full softmax."),
        REAL(rollout, min_p, "0", 0, 1, 0,
             "Leave out tokens with less than this share of the likeliest token's probability. 0: off."),
        INT(rollout, top_k, "0", 0, MANY, "Sample from the k likeliest tokens. 0: off."),
        BOOL(
            rollout, off_policy, "false",
            "Mix off-policy traces into the groups (LUFFY): the \"completion\" of a row takes the place of its group's last rollout."),
        BOOL(rollout, ignore_eos, "false",
             "Let every completion continue to rollout.max_new_tokens, past end-of-sequence tokens: equal work, for measurements."),
        TEXT(rollout,
             stop_ids, "", "Token ids that end a completion besides the model's end-of-sequence tokens, separated by commas."),

        TEXT(verifier, plugins, "math",
             "Verifiers, separated by spaces or commas, each with an optional weight: math:1 python:0.1. The reward is the weighted sum. One that is used twice needs a second name: math math as strict:0.5, with the parameters of [verifier.strict]."),
        INT(verifier, workers, "0", 0, 4096, "Completions verified at the same time. 0: one for each core."),
        REAL(
            verifier, timeout, "10", 0, 86400, KEY_ABOVE_MIN,
            "Seconds one completion may take; after that its verdict is timeout. A call for several at once has the sum of theirs."),
        CHOICE(
            verifier, overlong, "none", CHOICES_OVERLONG,
            "Completions cut at rollout.max_new_tokens. none: rewarded as they are; zero: reward 0; linear: a penalty that grows over the last verifier.overlong_buffer tokens."),
        INT(verifier, overlong_buffer, "0", 0, MANY, "Length of the linear penalty's ramp, in tokens."),
        REAL(verifier, overlong_penalty, "1", 0, BIG, 0, "What the linear penalty subtracts from the reward at full length."),
        CHOICE(
            verifier, isolate, "thread", CHOICES_ISOLATE,
            "process runs verifiers in worker processes, so that a crash or an endless loop costs one verdict; thread runs them in this one, faster."),
        CHOICE(
            verifier, confine, "try", CHOICES_CONFINE,
            "System calls that worker processes (isolate = process) and the programs they start are refused: other processes' memory, namespaces, mounts, kernel modules, keys, connections. try: a warning where the kernel has no seccomp; require: an error there; off: none is refused, for programs that make a sandbox of their own."),
        BOOL(
            verifier, network, "false",
            "Whether worker processes and the programs they start may open connections, such as to a judge behind a server. Sockets of this machine's files (AF_UNIX) are allowed in any case."),
        INT(verifier, memory, "0", 0, 1 << 30,
            "Memory of a worker process, and of each program that it starts, in MB of address space. 0: no limit."),
        INT(verifier, open_files, "1024", 0, 1 << 30,
            "Files that a worker process, and each program that it starts, may have open. 0: as many as this program."),
        INT(verifier, file_size, "4096", 0, 1 << 30,
            "Size in MB of a file that a worker process, or a program that it starts, may write. 0: any."),
        REAL(verifier, max_crash_share, "0.05", 0, 1, 0, "Stop the run when a larger share of a step's verdicts are crashes."),

        TEXT(clusterer, encoder, "hashed", "Encoder plugin E. It sees the row's question, never the rendered chat."),
        TEXT(
            clusterer, codebook, "auto",
            "Codebook plugin; none: no clusters; auto: kmeans when the estimator works by cluster, else none. The paper gives neither the encoder nor K; both are recorded with the run."),
        TEXT(clusterer, corpus, "", "JSONL file whose questions train the codebook when its file is absent. Empty: data.train."),
        INT(clusterer, clusters, "8", 1, 1000000, "Clusters K of that training."),
        INT(clusterer, seed, "0", 0, MANY, "Seed of that training (k-means++)."),
        INT(clusterer, restarts, "4", 1, 10000, "Restarts of that training; the one with the least inertia is kept."),
        INT(clusterer, iterations, "100", 1, 1000000, "Most Lloyd iterations of a restart."),

        TEXT(estimator, plugin, "bv_blend",
             "Estimator plugin: a name on the search path, or a file. Swapping it is one line: estimator.plugin=grpo."),

        TEXT(
            objective, plugin, "ppo",
            "Name of the objective (`tare plugin list`), or a file. ppo: the clipped surrogate, by loss.clip, loss.clip_high and loss.dual_clip."),
        CHOICE(
            loss, aggregation, "sequence", CHOICES_AGGREGATION,
            "How token losses are averaged. sequence: mean over a trajectory's tokens, then over the group, then over prompts (the paper); token: mean over all tokens; constant: sum over tokens divided by loss.aggregation_length."),
        INT(loss, aggregation_length, "0", 0, MANY,
            "The constant that loss.aggregation = constant divides by. 0: rollout.max_new_tokens."),
        REAL(
            loss, clip, "0.2", 0, 1, KEY_ABOVE_MIN,
            "Clipping epsilon: the ratio is kept in [1 - epsilon, 1 + epsilon] (the paper's 0.2). Objectives with bounds of their own do not read it (docs/objectives.md)."),
        REAL(loss, clip_high, "0", 0, BIG, 0, "Upper epsilon when it differs from the lower one (clip-higher). 0: as loss.clip."),
        REAL(loss, dual_clip, "0", 0, BIG, 0,
             "Bound on the loss of tokens with a negative advantage, as a multiple of it; above 1. 0: off."),
        REAL(loss, kl_coef, "0", 0, BIG, 0,
             "Coefficient beta of the KL to the reference policy (the paper's 0). 0: no reference policy is loaded."),
        REAL(
            loss, entropy_coef, "0", 0, BIG, 0,
            "Coefficient of the entropy bonus. The paper and its recipes use 0.01. In steps without any reward signal the bonus alone moves the weights. 0: off."),
        CHOICE(
            loss, kl, "exact", CHOICES_KL,
            "The KL term. exact sums over the vocabulary (the paper's form); k1, k2, k3 are Schulman's estimates from the sampled token."),
        CHOICE(
            loss, kl_weight, "none", CHOICES_KL_WEIGHT,
            "What multiplies an estimate (k1, k2, k3), so that its gradient is that of the KL. ratio: pi/pi_old (DeepSeek-V3.2, TRL); score: pi/sg(pi), 1 with a gradient (NeMo-RL)."),
        CHOICE(
            loss, kl_place, "loss", CHOICES_KL_PLACE,
            "Where an estimate (k1, k2, k3) enters. loss: beside the objective. reward: at pi_old, and each token's advantage is lowered by beta times the sum from it to the end (OpenRLHF)."),
        CHOICE(
            loss, old_logprobs, "sampler", CHOICES_OLD_LOGPROBS,
            "Where pi_old comes from: recorded while sampling, or computed again before the update. On the CPU both have the same bits."),
        CHOICE(loss, rollout_is, "none", CHOICES_ROLLOUT_IS,
               "Correction for a sampler whose probabilities differ from the trainer's. tis: truncated importance weights."),
        REAL(
            loss, shaping, "0.1", 0, 1, KEY_ABOVE_MIN,
            "Policy shaping of off-policy tokens (LUFFY): gamma of f(pi) = pi / (pi + gamma), which takes the ratio's place, unclipped."),
        REAL(loss, rollout_is_cap, "2", 0, BIG, KEY_ABOVE_MIN, "Largest weight of tis."),

        INT(train, steps, "500", 1, MANY, "Steps: each samples, verifies, estimates and updates once (the paper's 500)."),
        INT(train, minibatch, "64", 1, MANY,
            "Trajectories of one optimizer step (the paper's 64). Whole groups are shuffled into minibatches, so it is a multiple of rollout.group_size."),
        INT(train, epochs, "1", 1, 1000, "Passes over a step's rollouts. The paper does not say; ours is 1."),
        INT(train, micro_tokens, "16384", 1, MANY,
            "Most tokens in one forward and backward pass; sets the memory of activations. A longer group is split between rollouts, and its prompt is computed in each part; a single rollout is never split."),
        REAL(train, lr, "1e-6", 0, 10, 0, "Peak learning rate (the paper's 1e-6)."),
        REAL(train, lr_floor, "0", 0, 1, 0, "Where the schedule ends, as a share of the peak. The paper does not say; ours is 0."),
        REAL(
            train, warmup_ratio, "0.03", 0, 1, 0,
            "Share of all optimizer steps that warm up linearly from 0, when train.warmup_steps is 0. The paper does not say; ours is 0.03."),
        INT(train, warmup_steps, "0", 0, MANY,
            "Optimizer steps of warmup, not steps of the run: one of those has an optimizer step for every train.minibatch rollouts, times train.epochs. 0: train.warmup_ratio decides."),
        CHOICE(train, schedule, "cosine", CHOICES_SCHEDULE,
               "Learning rate after the warmup: cosine to the floor (the paper), constant, or linear to the floor."),
        REAL(train, beta1, "0.9", 0, 0.999999, 0, "AdamW's beta1. The paper does not say."),
        REAL(train, beta2, "0.999", 0, 0.999999999, 0, "AdamW's beta2. The paper does not say."),
        REAL(train, eps, "1e-8", 0, 1, KEY_ABOVE_MIN, "AdamW's epsilon. The paper does not say."),
        REAL(train, weight_decay, "0", 0, 10, 0,
             "AdamW's decoupled weight decay, on every parameter, norms and biases included. The paper does not say; ours is 0."),
        REAL(train, max_grad_norm, "1", 0, BIG, 0,
             "Gradients are scaled down to this global norm. 0: off. The paper does not say; ours is 1."),
        CHOICE(
            train,
            recompute, "none", CHOICES_RECOMPUTE,
            "What the backward pass computes again in place of keeping it. none: nothing; norms: the outputs of the norms and of the MLP's activation function (a third less memory, hardly more time); mlp: its first product too (a fifth of the memory, about a fifth more time); layer: whole layers (least memory, about a third more time). Never changes a result."),
        CHOICE(
            train,
            on_nonfinite, "stop", CHOICES_NONFINITE,
            "A loss or a gradient that is not finite, or too large for the moments: stop the run with an error; skip that optimizer step and count it; or rollback, go back to the checkpoint of the last step that checkpoint.every divides and go on with the prompts that come next (`tare train` alone)."),
        INT(train, max_rollbacks, "3", 1, MANY,
            "How many times a run goes back with train.on_nonfinite = rollback; the time after that is an error."),
        BOOL(
            train, prompt_sharing, "true",
            "Compute a prompt once for its G rollouts in the update. false computes it G times; gradients differ by rounding only."),

        INT(lora, rank, "0", 0,
            65536, "Rank r of the adapters. 0: off, all weights are trained. Above 0 `tare train` and `tare sft` freeze the weights of model.path and train A [r, in] and B [out, r] beside each chosen linear layer: y = W x + s B (A x)."),
        REAL(lora, alpha, "16", 0, BIG, KEY_ABOVE_MIN, "Scale of the adapters: s = alpha / rank."),
        TEXT(
            lora, targets, "all-linear",
            "Linear layers that get an adapter: names out of q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj, with commas between them; a model whose checkpoint has them fused (phi3) has qkv_proj, o_proj, gate_up_proj, down_proj. all-linear: all that the model has."),
        BOOL(lora, rslora, "false", "s = alpha / sqrt(rank) (rsLoRA)."),

        BOOL(
            process_reward, implicit, "false",
            "Train a second model of the policy's shape on the rollouts' outcomes, and give each token beta times the logarithm of its probability under that model over that under the reference (model.reference) as a reward, for estimators that read rewards of segments: prime, grpo_process."),
        TEXT(process_reward, model, "",
             "Hugging Face folder that this model begins from, of the policy's shape and tokenizer. Empty: model.path."),
        REAL(process_reward, beta, "0.05", 0, BIG, KEY_ABOVE_MIN, "Factor of the rewards, in their use and in the loss."),
        CHOICE(
            process_reward, norm, "largest", CHOICES_PROCESS_NORM,
            "largest: rewards are divided by the largest sum of rewards from a token to the end, of all of the step; none: as they are."),
        INT(process_reward, minibatch, "0", 0, MANY,
            "Rollouts of an optimizer step of this model, in whole groups. 0: all of a step."),
        REAL(process_reward, lr, "1e-6", 0, 10, 0, "Its learning rate, constant."),
        REAL(process_reward, max_grad_norm, "10", 0, BIG, 0, "Bound on the norm of its gradient. 0: off."),

        INT(relift, rows, "0", 0, 1000000,
            "Demonstrations of a supervised update. Questions whose rollouts all fail are collected; as soon as there are so many, the update follows that of the policy, on the \"completion\" of their rows, the newest first. 0: off."),
        REAL(relift, reward, "0", -BIG, BIG, 0, "A question was not solved when no rollout of its group has a reward above this."),
        INT(relift, minibatch, "0", 0, 1000000, "Rows of an optimizer step; divides relift.rows. 0: all of them."),
        INT(relift, epochs, "1", 1, 1000, "Passes over the rows of an update."),
        REAL(relift, lr, "0", 0, 10, 0, "Learning rate, constant. 0: train.lr."),
        REAL(relift, entropy_coef, "0", 0, BIG, 0, "Coefficient of the entropy bonus."),
        REAL(relift, max_grad_norm, "1", 0, BIG, 0, "Bound on the norm of the gradient. 0: off."),

        INT(sft, steps, "0", 0, MANY, "Optimizer steps. 0: sft.epochs decides."),
        INT(sft, batch, "128", 1, MANY, "Rows of one optimizer step."),
        INT(sft, epochs, "1", 1, MANY, "Passes over data.train, when sft.steps is 0."),
        BOOL(sft, train_on_prompt, "false", "Whether the prompt's tokens count in the loss."),
        TEXT(sft, out, "", "Folder of the resulting model. Empty: `model` in run.dir."),

        INT(dist, ranks, "0", 0, 100000,
            "Ranks of the job. 0: as many as the launcher (mpirun, srun) started, 1 without one. A number that differs from the launcher's is refused. Without a launcher a number above 1 starts that many on this machine, through mpirun."),
        CHOICE(
            dist, communicator, "auto", CHOICES_COMMUNICATOR,
            "What carries data between ranks: mpi between processes; nccl between GPUs (with mpi for the rest). auto: nccl with run.device = cuda where this build has it, else mpi."),
        REAL(
            dist, timeout_s, "1800", 0, 1e6, 0,
            "Seconds that the others wait in a collective for a rank before the job ends with an error that names it. Must be longer than the slowest rank may lag in a stage. 0: wait forever."),
        CHOICE(
            dist, shard, "zero3", CHOICES_SHARD,
            "What a rank holds of weights in fp32, sums of gradients and moments. zero3: its 1/R of each. zero1: the weights whole, its 1/R of the rest. none: weights and moments whole. The copy that is sampled from is whole in each. Never changes a result."),
        INT(dist, gradient_shards, "8", 1, 4096,
            "Groups of a minibatch are dealt into so many shards, whose gradients are computed apart and added in one order: weights have the same bits on every number of ranks up to this one. More ranks are refused. Another number rounds differently."),

        INT(eval, every, "0", 0, MANY, "Steps between evaluations on data.eval. 0: none during training."),
        INT(eval, samples, "1", 1, 100000, "Completions of a question (k of avg@k and pass@k)."),
        INT(eval, rows, "0", 0, MANY, "Use only the first rows of data.eval. 0: all."),
        INT(eval, max_new_tokens, "0", 0, MANY, "Longest completion. 0: rollout.max_new_tokens."),
        REAL(eval, temperature, "0.6", 0, 1000, 0, "Sampling temperature of evaluation (the paper's 0.6). 0: greedy."),
        REAL(eval, top_p, "1", 0, 1, KEY_ABOVE_MIN, "As rollout.top_p, for evaluation."),
        REAL(eval, min_p, "0", 0, 1, 0, "As rollout.min_p, for evaluation."),
        INT(eval, top_k, "0", 0, MANY, "As rollout.top_k, for evaluation."),
        BOOL(eval, before, "false", "Evaluate before the first step."),
        BOOL(eval, after, "false", "Evaluate after the last step."),
        TEXT(eval, name, "", "Name of the task in the tables of `tare eval`. Empty: the file name of data.eval."),
        TEXT(eval, out, "", "Folder that `tare eval` writes to and continues from. Empty: eval/NAME in run.dir."),
        INT(eval, chunk, "0", 0, MANY,
            "Questions that `tare eval` samples together and then writes: the most that is lost when it is killed. 0: as many as make 128 completions. Never changes the text."),
        INT(eval, bootstrap, "2000", 0, 1000000,
            "Resamplings of the questions for the 95 % confidence intervals. 0: no intervals."),
        TEXT(
            eval, difficulty, "",
            "questions.jsonl of an earlier `tare eval` of the same questions: sorts them into Easy, Medium, Hard and Hardest by the pass rate it holds. Empty: no such table."),
        TEXT(
            eval, buckets, "0.75 0.5 0.25",
            "Lowest pass rates of Easy, Medium and Hard; what is below is Hardest. The paper does not say; ours are the quarters."),
        TEXT(
            eval, complex_field, "",
            "Field of the rows that tells complex from standard: true or \"complex\", false or \"standard\". Splits the difficulty table."),
        TEXT(eval, complex_rules, "",
             "File with rules that tell complex from standard rows, in place of a field (docs/evaluation.md)."),

        INT(checkpoint, every, "50", 0, MANY, "Steps between checkpoints. 0: only as checkpoint.last says, and when interrupted."),
        INT(checkpoint, keep, "2", 0, MANY, "Complete checkpoints to keep, the newest. 0: all."),
        BOOL(checkpoint, optimizer, "true", "Save what --resume needs (optimizer, estimator, data order). false: weights only."),
        BOOL(checkpoint, last, "true", "Save after the last step."),

        BOOL(log, tensorboard, "true", "Write TensorBoard events."),
        BOOL(log, database, "true", "Write the run and its metrics into runs.db (SQLite) next to run.dir."),
        BOOL(log, rollouts, "true", "Write every step's rollouts to rollouts/step-NNNNNN.jsonl."),
        TEXT(
            log, export, "",
            "Services that the run's metrics are sent to while it runs, by comma: wandb, trackio, mlflow, swanlab, comet. A child process does it, by tare_sdk and the services' own clients for Python (docs/logging.md); what becomes of it never disturbs the run."),
        CHOICE(
            log, level, "info", CHOICES_LEVEL,
            "Least important message that train, sft, eval and sweep print. warn and error hide progress as well. -v and -q before the verb take precedence."),
        CHOICE(
            log, progress, "auto", CHOICES_PROGRESS,
            "Progress on standard error: a line that is redrawn, plain lines, or none. auto: a bar on a terminal, lines elsewhere."),
        {0},
};

int64_t config_n_keys(void)
{
    return (int64_t)(sizeof CONFIG_KEYS / sizeof *CONFIG_KEYS) - 1;
}
