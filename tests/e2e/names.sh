#!/usr/bin/env bash
# Checks that keys of TRL and verl are refused with tare's name for them, as docs/names.md gives it:
# the page equals the table of core/config/names.c.
. "$(dirname "$0")/common.inc"
has_python || done_
python3 - "$TARE" "$SOURCE" << 'PY' || bad "the page and the program differ"
import re, subprocess, sys
tare, root = sys.argv[1:]
page = open(root + "/docs/names.md", encoding="utf-8").read().split("## Metrics")[0]
table = re.findall(r'^    \{"(TRL|verl)", "([^"]+)", "([^"]+)"', open(root + "/core/config/names.c").read(), flags=re.M)
keys = set(re.findall(r"^([a-z_]+\.[a-z_0-9]+) \(default", subprocess.run([tare, "config", "docs"], capture_output=True, text=True).stdout, flags=re.M))
wrong, pairs = 0, 0
def bad(*what):
    global wrong
    wrong += 1
    print(*what)
def names(cell):
    return [n for n in re.findall(r"`([a-z_0-9.]+)(?:=[^`]*)?`", cell)]
rows = []
for line in page.splitlines():
    cells = [c.strip() for c in line.strip().strip("|").split(" | ")]
    if "`" not in cells[0] or len(cells) != 3: continue
    ours = [n for n in re.findall(r"`([a-z_]+(?:\.[a-z_0-9]+)+)", cells[0])]
    rows.append((ours, {"TRL": names(cells[1]), "verl": names(cells[2])}))
# The program prints the name that the page gives for a key.
for ours, theirs in rows:
    for trainer, given in theirs.items():
        for name in given:
            # Max_grad_norm is a key of tare, too.
            own = any(k == name or k.endswith("." + name) for k in keys)
            if own or not ours or name.startswith("trainer.resume"): continue
            said = subprocess.run([tare, "config", "dump", root + "/configs/own.ini", name + "=1"], capture_output=True, text=True)
            hint = re.search(r"(?:TRL|verl)'s (\S+) is (\S+) here", said.stderr)
            pairs += 1
            if said.returncode != 3 or not hint: bad("no hint for %s's %s (%s): %s" % (trainer, name, ours, said.stderr.strip()))
            elif hint[2] not in {o for r, t in rows for o in r if name in t["TRL"] + t["verl"]}: bad("%s: the page has %s, the program %s" % (name, ours, hint[2]))
# And the other way round.
for trainer, name, key in table:
    if key not in keys and not key.startswith("verifier.python."): bad("%s is not a key" % key)
    if not any(key in ours and any(n == name or n.endswith("." + name) for n in theirs["TRL"] + theirs["verl"]) for ours, theirs in rows):
        bad("docs/names.md does not pair %s's %s with %s" % (trainer, name, key))
print("%d names of the page, %d of the table" % (pairs, len(table)))
sys.exit(wrong > 0 or pairs < 60 or len(table) < 60)
PY
ok
hint() { # PATTERN FILE-TEXT [override]
    printf '%b' "$2" > x.ini
    "$TARE" config dump x.ini ${3:+"$3"} > /dev/null 2> err.txt && bad "accepted: $2 ${3:-}" || { grep -q -e "$1" err.txt && ok || bad "$2 ${3:-}: $(cat err.txt)"; }
}
hint "x.ini:2: TRL's learning_rate is train.lr here" '[train]\nlearning_rate = 1e-5\n'
hint "x.ini:1: TRL's num_generations is rollout.group_size here" 'num_generations = 8\n'
hint "x.ini:2: TRL's beta is loss.kl_coef here (docs/names.md); or did you mean 'beta1'?" '[train]\nbeta = 0.04\n'
hint "x.ini:2: verl's optim.lr is train.lr here" '[actor_rollout_ref.actor.optim]\nlr = 1e-6\n'
hint "command line: verl's optim.lr is train.lr here" '' actor_rollout_ref.actor.optim.lr=1e-6
hint "command line: TRL's per_device_train_batch_size is train.minibatch here (the number of rollouts per optimizer step" '' per_device_train_batch_size=8
hint "command line: 'lr=1' is not section.key=value; lr is a key of \[train\]" '' lr=1
hint "x.ini:1: 'as' is before the first section, where only include = FILE is allowed; as is a key of \[run\]" 'as = trl\n'
hint "\[estimator\] has no key 'temperature'; a plugin's own parameters go in \[estimator.NAME\] (rollout.temperature is another key)" '[estimator]\ntemperature = 1\n'
# PPO with a critic, in the names of verl, Open-Reasoner-Zero and TRL.
for key in critic.optim.lr=1e-5 critic.model.path=x algorithm.gamma=1.0 algorithm.lam=1.0 trainer.critic_warmup=0 critic_learning_rate=5e-6 lambd=1.0 vf_coef=0.1; do
    hint "command line: ${key%%=*} needs a critic, but tare trains no second network .*reinforce_pp_baseline .*configs/open-reasoner-zero.ini" '' "$key"
done
hint "x.ini:2: critic.lr needs a critic" '[critic]\nlr = 5e-6\n'
for name in gae ppo; do
    echo '{"groups":[{"rewards":[1,0]}]}' | "$TARE" estimate $name > /dev/null 2> err.txt && bad "estimator $name was accepted" || { grep -q "$name needs a critic, but tare trains no second network" err.txt && ok || bad "$name: $(cat err.txt)"; }
done
"$TARE" config check "$SOURCE/configs/open-reasoner-zero.ini" estimator.plugin=gae > err.txt 2>&1 && bad "gae was accepted"
grep -q "estimator.plugin.*gae needs a critic" err.txt && ok || bad "estimator.plugin = gae was not refused with its reason: $(cat err.txt)"
"$TARE" config dump "$SOURCE/configs/open-reasoner-zero.ini" > dump.txt 2> err.txt && grep -q '^plugin = reinforce_pp_baseline' dump.txt && grep -q '^group_size = 64' dump.txt && ok ||
    bad "the recipe of Open-Reasoner-Zero does not load: $(cat err.txt)"
# ; begins a comment after a value, # does not: a value that seems to have a comment gives a
# warning.
printf '[data]\nsuffix = think # of it\nsystem = "a # b"\n[train]\nsteps = 3 ; few\n' > x.ini
"$TARE" config dump x.ini > dump.txt 2> err.txt && grep -q '^suffix = "think # of it"' dump.txt && grep -q "x.ini:2: '# of it' is part of the value: a comment after a value starts with ;" err.txt &&
    [ "$(wc -l < err.txt)" = 1 ] && ok || bad "a # in a value: $(cat err.txt)"
cp dump.txt again.ini && "$TARE" config dump again.ini > dump2.txt 2> err.txt && [ ! -s err.txt ] && grep -q '^suffix = "think # of it"' dump2.txt && ok || bad "a dump changes the value: $(cat err.txt)"
hint "'3 # few' is not a whole number" '[train]\nsteps = 3 # few\n'
# Every verb with settings knows the names, as settings and as options. A verb's own option is not a
# key.
tiny_config
for verb in train sft eval plan sweep variance 'config check' 'config dump' 'data show' audit ladder; do
    file=tiny.ini
    case $verb in ladder) file='' ;; esac
    for name in num_generations=8 '--num_generations 8' --num_generations=8; do
        # shellcheck disable=SC2086 # words of a command line
        "$TARE" $verb $file $name > out.txt 2> err.txt && bad "tare $verb accepts $name"
        grep -q "TRL's num_generations is rollout.group_size here" err.txt && ok || bad "tare $verb $name: $(head -2 err.txt)"
    done
done
# Verbs with few keys know them, too, and the message lists their keys.
explained() { # STATUS WORDS command...
    local want=$1 words=$2 got=0
    shift 2
    "$TARE" "$@" > out.txt 2> err.txt < /dev/null || got=$?
    [ $got = "$want" ] && grep -qF -- "$words" err.txt && ok || bad "tare $*: status $got, $(head -3 err.txt)"
}
for name in num_generations=8 --num_generations=8; do explained 3 "TRL's num_generations is rollout.group_size here" generate base "$name"; done
explained 2 "TRL's num_generations is rollout.group_size here" generate base --num_generations 8
explained 3 "TRL's max_completion_length is rollout.max_new_tokens here" generate base max_completion_length=8
explained 3 "tare generate has no key 'beta', and no equivalent: TRL's beta is loss.kl_coef here" generate base beta=0.1
explained 3 "tare score has no such key: TRL's beta is loss.kl_coef here" score base beta=0.1
explained 3 "tare generate has no key 'temprature'; the nearest is 'temperature'" generate base temprature=1
explained 3 "[estimator.grpo] num_generations: unknown key: TRL's num_generations is rollout.group_size here" estimate grpo num_generations=8
explained 3 "TRL's max_completion_length is rollout.max_new_tokens here" estimate bv_blend max_completion_length=8
explained 2 "TRL's beta is loss.kl_coef here" estimate grpo --beta 0.1
explained 2 "unknown option --fast" estimate grpo --fast
explained 3 "TRL's num_generations is rollout.group_size here" config check tiny.ini estimator.bv_blend.num_generations=8
"$TARE" eval tiny.ini --steps > out.txt 2> err.txt && bad "--steps without a value"
grep -q 'unknown option' err.txt && bad "eval's own option is reported as unknown: $(head -2 err.txt)" || ok
"$TARE" diff tiny.ini --num_generations 8 > out.txt 2> err.txt && bad "diff has no keys"
grep -q 'rollout.group_size\|section.key' err.txt && bad "diff has no settings: $(head -2 err.txt)" || ok
done_
