"""Prints the results.jsonl of run.sh as a table, with targets and the machine's limits: table.py RESULTS"""
import json
import sys

rows = [json.loads(line) for line in open(sys.argv[1]) if line.strip()]
read = max([r["read_gbs"] for r in rows if r.get("bench") == "bandwidth"], default=None)
peak = max([r["tflops"] for r in rows if r.get("bench") == "matmul"], default=None)
if read:
    print("memory bandwidth, the best measured: %.0f GB/s" % read)
if peak:
    print("bf16 product of 8192^3 by PyTorch: %.0f TFLOP/s" % peak)
for r in rows:
    who, kind = r.get("peer", "?").split()[0], r.get("bench")
    if kind == "train":
        print("%-6s train  %-5s %2d layers T=%-6d %8.4f s  %6.1f TFLOP/s  MFU %.1f %% of 989 (wanted: 50)" %
              (who, r["shape"], r["layers"], r["tokens"], r["seconds"], r["tflops"], 100 * r["mfu_989"]))
    elif kind == "decode":
        share = ", %.1f %% of the read bandwidth (wanted: 80)" % (100 * r["gbs"] / read) if read else ""
        apart = ", each launch after the one in front" if r.get("launches") == "apart" else ""
        print("%-6s decode %-5s %2d layers n=%-4d %8.3f ms a token  %7.0f GB/s%s%s" %
              (who, r["shape"], r["layers"], r["sequences"], 1e3 * r["seconds_per_token"], r["gbs"], share, apart))
    elif kind == "operation":
        share = ", %.1f %% of the read bandwidth" % (100 * r["gbs"] / read) if read else ""
        how = "" if r.get("deterministic", "true") == "true" else "  (%s)" % r["deterministic"]
        print("%-6s %-5s %-21s %4d rows %9.1f us  %7.0f GB/s  %6.1f TFLOP/s%s%s" %
              (who, r["shape"], r["operation"], r["rows"], 1e6 * r["seconds"], r["gbs"], r["tflops"], share, how))
    elif kind == "step":
        print("%-6s step   %-5s %d x %d x %d: rollout %.2f s (%.0f tok/s), update %.2f s (MFU %.1f %%), mismatch %.3g" %
              (who, r["shape"], r["prompts"], r["samples"], r["new_tokens"], r["rollout_seconds"], r["rollout_tokens_per_second"],
               r["update_seconds"], 100 * r["update_mfu_989"], r["mismatch"]))
    elif "failed" in r:
        print("FAILED " + r["failed"])
