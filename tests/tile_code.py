#!/usr/bin/env python3
"""Checks the machine code of the tiles that matrix products of many rows run in (kernels/cpu/gemm.c).

    tests/tile_code.py SOURCE NAME=FLAGS ...        for every instruction set, with every installed compiler of gcc and clang
    tests/tile_code.py SOURCE neon=FLAGS            the same for aarch64, with gcc's and clang's cross compilers; the flags are gcc's

A tile keeps its sums in registers. If a compiler runs out of them, or keeps the sums in an array, the loop is correct but slow, which no other
test would notice. So the largest tile must be one loop with all its multiply-adds, and no loop around multiply-adds may read the stack or store a vector.
On NEON it must not load more often than once for each number of A and each pair of B's vectors.
"""
import re
import shutil
import subprocess
import sys
import tempfile

TILE = """
#include "caches.h"
#include "kernels.h"
#include "kernels_cpu.h"
#include "cpu/scratch.h"
#include "cpu/simd.h"
#include "cpu/spans.h"
#include "cpu/vectors.h"
#include "cpu/gemm.c"
#include "cpu/gemm_int8.c"
void tile(int rows, int dot, int64_t k, const float *a, const float *b, const struct gemm_tile *t);
void tile(int rows, int dot, int64_t k, const float *a, const float *b, const struct gemm_tile *t)
{
    gemm_cached(rows, dot, k, a, b, t);
}
void few_int8(const struct gemm *g, int rows, int64_t p, const struct gemm_tile *t, const float *a);
void few_int8(const struct gemm *g, int rows, int64_t p, const struct gemm_tile *t, const float *a)
{
    int8_few(g, rows, p, t, a);
}
"""
ADDS = re.compile(r"vfn?m(add|sub)[0-9]*ps$|vdpbf16ps$|fmla$")
# the largest tile's multiply-adds: 14 rows x 2 vectors a step, 6 x 2 of the narrow ones, 6 x 4 of NEON; four steps an iteration
WANTED = {"avx2": ["vfmadd"], "avx512": ["vfmadd"], "avx512bf16": ["vfmadd", "vdpbf16ps"], "neon": ["fmla"]}
COUNT = {"avx2": 48, "avx512": 112, "avx512bf16": 112, "neon": 96}
LOADS = {"neon": 4 * (6 + 2)}
NEON_GCC = "aarch64-linux-gnu-gcc"


def functions(path, objdump):
    text = subprocess.run([objdump, "-d", "--no-show-raw-insn", path], check=True, capture_output=True, text=True).stdout
    name, body = None, []
    for line in text.splitlines():
        start = re.match(r"[0-9a-f]+ <(.*)>:", line)
        step = re.match(r"\s*([0-9a-f]+):\s+(\S+)\s*(.*)", line)
        if start:
            if body:
                yield name, body
            name, body = start[1], []
        elif step:
            body.append((int(step[1], 16), step[2], step[3]))
    if body:
        yield name, body


def inner_loops(body):
    place = {at: i for i, (at, _, _) in enumerate(body)}
    loops = []
    for i, (at, op, args) in enumerate(body):
        target = re.search(r"(?:^|, )([0-9a-f]+) <", args) if re.match(r"j|b(\.|$)|[ct]bn?z$", op) else None
        if target and int(target[1], 16) <= at and int(target[1], 16) in place:
            loops.append((place[int(target[1], 16)], i))
    for begin, end in loops:
        if not any(begin <= b and e <= end and (b, e) != (begin, end) for b, e in loops):
            yield body[begin:end + 1]


def stores_vector(op, args):
    """AT&T order: the last operand is the destination. On aarch64 it is the first, and stores are named so."""
    return op.startswith("vmov") and re.match(r"%[xyz]mm\d+,.*\)$", args) or re.match(r"st[1-4rpu]", op) and re.match(r"\{?[vqds]\d", args)


def looked_at(path, name):
    """Returns the faults, and the number of loops."""
    wrong, loops, full = [], 0, []
    for function, body in functions(path, "aarch64-linux-gnu-objdump" if name == "neon" else "objdump"):
        if name == "neon":
            frame = r"\[sp" if not any(op == "mov" and args == "x29, sp" for _, op, args in body) else r"\[(sp|x29)"
        else:
            frame = r"\(%r[sb]p" if any(op == "mov" and args == "%rsp,%rbp" for _, op, args in body) else r"\(%rsp"
        for loop in inner_loops(body):
            adds = [op for _, op, _ in loop if ADDS.match(op)]
            if len(adds) < 2:
                continue
            loops += 1
            if len(adds) == COUNT[name]:
                full += adds[:1]
                loads = sum(op.startswith("ld") for _, op, _ in loop)
                if loads > LOADS.get(name, loads):
                    wrong.append(f"{function}: {loads} loads for {len(adds)} multiply-adds, more than {LOADS[name]}")
            for at, op, args in loop:
                if re.search(frame, args) or stores_vector(op, args):
                    wrong.append(f"{function}+{at - body[0][0]:#x}: {op} {args}, in a loop of {len(adds)} multiply-adds")
    for kind in WANTED[name]:
        if not any(op.startswith(kind) for op in full):
            wrong.append(f"no loop has {COUNT[name]} {kind} instructions: the largest tile is not one loop in registers")
    return wrong, loops


def main():
    source, sets = sys.argv[1], [s.split("=", 1) for s in sys.argv[2:]]
    cross = [name for name, _ in sets] == ["neon"]
    if cross and not shutil.which(NEON_GCC):
        print(f"SKIP: another processor: {NEON_GCC} is not installed")
        return 77
    compilers = [c for c in ((NEON_GCC, "clang") if cross else ("gcc", "clang")) if shutil.which(c)]
    if not compilers or not shutil.which("objdump"):
        print("SKIP: neither gcc nor clang, or no objdump")
        return 77
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/tile.c", "w") as f:
            f.write(TILE)
        for compiler in compilers:
            for name, flags in sets:
                if cross and compiler == "clang":
                    flags = "--target=aarch64-linux-gnu"
                made = subprocess.run([compiler, "-std=c17", "-D_DEFAULT_SOURCE", "-D_POSIX_C_SOURCE=200809L", "-O3", "-ffp-contract=off", "-fno-math-errno", "-w",
                                       *(f"-I{source}/{d}" for d in ("core", "kernels", "sdk/include")), *flags.split(), "-c", f"{folder}/tile.c", "-o",
                                       f"{folder}/tile.o"], capture_output=True, text=True)
                if made.returncode:
                    print(f"{compiler}, {name}: does not compile:\n{made.stderr[-2000:]}")
                    failed = True
                    continue
                wrong, loops = looked_at(f"{folder}/tile.o", name)
                print(f"{compiler}, {name}: {loops} loops, {len(wrong)} faults", *wrong[:8], sep="\n    ")
                failed = failed or bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
