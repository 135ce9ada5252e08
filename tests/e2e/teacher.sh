#!/usr/bin/env bash
# Checks on-policy distillation (estimator opd) from a teacher of another shape: it trains,
# bit-identically on any number of ranks and after a resume; a teacher with other tokens is refused.
source "$(dirname "$0")/common.inc"
tiny_config
sed -e 's/^dir = sft/dir = teach/' -e 's/^out = base/out = teacher/' -e 's/^hidden_size = 64/hidden_size = 96/' -e 's/^layers = 2/layers = 3/' \
    -e 's/^kv_heads = 2/kv_heads = 4/' -e 's/^steps = 30/steps = 60/' sft.ini > teacher.ini
"$TARE" sft teacher.ini > /dev/null 2> err.txt && ok || bad "the teacher: $(tail -n 2 err.txt)"
train() { timeout 300 "$TARE" train tiny.ini estimator.plugin=opd model.reference=teacher train.steps=4 checkpoint.every=2 log.progress=none \
    log.rollouts=true "$@" > out.txt 2> err.txt; }
train run.dir=whole && ok || bad "training: $(tail -n 2 err.txt)"
same() { cmp -s whole/checkpoints/step-000004/model.safetensors "$1/checkpoints/step-000004/model.safetensors" && ok || bad "$2: the weights differ"; }
grep -c '"advantage":-\{0,1\}[0-9.]*[1-9]' whole/rollouts/step-000001.jsonl > count.txt
[ "$(cat count.txt)" -gt 16 ] && ok || bad "the teacher has no effect: $(cat count.txt) of 32 rollouts have an advantage"
train run.dir=ranks dist.ranks=2 && ok || bad "two ranks: $(tail -n 2 err.txt)"
same ranks "two ranks"
train run.dir=recomputed loss.old_logprobs=recompute && ok || bad "old logprobs recomputed: $(tail -n 2 err.txt)"
killed_at update 4 train run.dir=resumed && train run.dir=resumed --resume && ok || bad "resumed: $(tail -n 2 err.txt)"
same resumed "resumed"
# The plan has the teacher's own size.
held() { "$TARE" plan tiny.ini estimator.plugin=opd model.reference="$1" --json 2> err.txt | tr ',{' '\n\n' | sed -n 's/^"reference": *\([0-9.e+]*\).*/\1/p' | head -n 1; }
small=$(held base) large=$(held teacher)
[ -n "$small" ] && [ -n "$large" ] && awk -v a="$small" -v b="$large" 'BEGIN { exit !(a > 0 && b > 1.5 * a) }' && ok || bad "the plan: '$small' for the policy's shape, '$large' for the teacher's: $(tail -n 2 err.txt)"
# Another tokenizer; more tokens than the teacher has logits.
cp -r teacher other && rm other/sums.json
sed -i 's/<|endoftext|>/<|end_of_it|>/g' other/tokenizer.json
train run.dir=refused model.reference=other && bad "another tokenizer was accepted" || ok
grep -q 'model.reference = other has another tokenizer than model.path = base' err.txt && ok || bad "another tokenizer: $(tail -n 2 err.txt)"
rm other/tokenizer.json
train run.dir=refused model.reference=other && bad "a teacher without a tokenizer was accepted" || ok
grep -q "model.reference = other differs from the policy in shape, so it needs the policy's tokenizer" err.txt && ok || bad "no tokenizer: $(tail -n 2 err.txt)"
done_
