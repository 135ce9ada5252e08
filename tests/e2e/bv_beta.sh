#!/bin/bash
# Checks bv_beta against its formulas, written a second time in Python, over steps that carry state.
# The largest advantage after a long run of wrong answers is bounded.
. "$SOURCE/tests/e2e/common.inc"
command -v python3 > /dev/null || skip "no python3"
cat > steps.py <<'PY'
import json, math, random, sys

K, RHO, A0, B0, T, DELTA = 3, 0.8, 0.7, 1.5, 0.2, 1e-8
if sys.argv[1] == "write":
    draw = random.Random(5)
    for _ in range(12):
        print(json.dumps({"groups": [{"cluster": draw.randrange(-1, K), "rewards": [draw.choice([0, 1, 0.25]) for _ in range(draw.randrange(1, 6))]}
                                     for _ in range(4)]}))
    for _ in range(60):
        print(json.dumps({"groups": [{"cluster": 0, "rewards": [0] * 8}]}))
    print(json.dumps({"groups": [{"cluster": 0, "rewards": [1] + [0] * 7}]}))
    sys.exit()
S, F, worst = [0.0] * K, [0.0] * K, 0.0
for given, got in zip(map(json.loads, open("in.jsonl")), map(json.loads, open("out.jsonl"))):
    met = {}
    for m, group in enumerate(given["groups"]):
        R, k = group["rewards"], group["cluster"]
        mean = sum(R) / len(R)
        variance = sum((r - mean) ** 2 for r in R) / (len(R) - 1) if len(R) > 1 else 0
        mu = v = w = 0
        if k >= 0:
            a, b = A0 + S[k], B0 + F[k]
            mu = a / (a + b)
            v = mu * (1 - mu)
            w = math.exp(-math.sqrt(v / (a + b + 1)) / T)
            s, n = met.get(k, (0, 0))
            met[k] = s + sum(R), n + len(R)
        base, scale = w * mu + (1 - w) * mean, math.sqrt(w * v + (1 - w) * variance)
        for r, A in zip(R, got["advantages"][m]):
            want = (r - base) / (scale + DELTA)
            assert abs(A - want) <= 1e-9 * max(1, abs(want)), (A, want)
            worst = max(worst, abs(A))
    for k, (s, n) in met.items():
        S[k], F[k] = RHO * S[k] + s, RHO * F[k] + n - s
last = max(map(abs, got["advantages"][0]))
assert 1 < last < 12, last # sqrt((a + b) / a_0) = 7.7 here; bv_blend's would be in the thousands
PY
python3 steps.py write > in.jsonl
"$TARE" -q estimate bv_beta clusters=3 rho=0.8 prior_a=0.7 prior_b=1.5 temperature=0.2 < in.jsonl > out.jsonl && python3 steps.py check && ok || bad "bv_beta differs from its formulas"
"$TARE" -q estimate bv_beta < in.jsonl > out.jsonl 2> err.txt && bad "accepted without clusters" || ok
grep -q codebook err.txt && ok || bad "without clusters: $(cat err.txt)"
"$TARE" plugin check bv_beta > check.txt 2>&1 && ok || bad "$(tail -5 check.txt)"
done_
