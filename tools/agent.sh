#!/bin/sh
# Trains the agent of configs/agent-guess.ini, and prints its reward next to the known ones and an
# episode before and after.
#   agent.sh TARE [section.key=value ...]
set -eu
tare=$1
shift
config=configs/agent-guess.ini
run=$("$tare" config dump $config "$@" | awk '$0 == "[run]" { on = 1 } /^\[/ && $0 != "[run]" { on = 0 } on && $1 == "dir" { print $3 }')
mkdir -p runs
[ -s runs/agent-guess.jsonl ] || "$tare" env demo guess --rows 5120 > runs/agent-guess.jsonl
"$tare" train $config "$@"

# mean FILTER: mean reward of the steps that the filter passes
mean() { grep -o '"reward/mean":[0-9.e+-]*' "$run/metrics.jsonl" | "$@" | awk -F: '{ sum += $2 } END { printf "%.3f", sum / NR }'; }
# episode STEP NUMBER: acts and observations of the first rollout of a row with this number
episode() {
    grep "^{\"id\":\"$2-1\"," "$run/rollouts/step-$1.jsonl" | grep '"sample":0,' | sed 's/.*"completion":"\([^"]*\)".*"reward":\([0-9]*\).*/\1 (reward \2)/; s/[<>!]/ & /g'
}
steps=$(ls "$run/rollouts" | sed -n 's/^step-\([0-9]*\)\.jsonl$/\1/p')
first=$(echo "$steps" | head -n 1)
last=$(echo "$steps" | tail -n 1)
cat << END

Guess a number from 1 to 7 in 3 guesses: mean reward at temperature 1
  blind guesses                      0.370
  first five steps                   $(mean head -n 5)
  guesses that the hints allow       0.678
  last ten steps                     $(mean tail -n 10)
  optimum: binary search             1.000
An episode with the number 5 (<: it is lower, >: it is higher)
  step $first   $(episode "$first" 5)
  step $last   $(episode "$last" 5)
Play it yourself: $tare env play guess
END
