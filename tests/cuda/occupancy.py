#!/usr/bin/env python3
"""Computes how the launches of Qwen2.5-7B's shapes fill an H100, and compares with occupancy.txt.

    tests/cuda/occupancy.py BUILD/test_launches_shim [--accept]

The program runs the backend's host code, which chooses kernels and grids, and writes its launches.
Registers and static shared memory of each kernel are those of code.txt. No GPU is needed. Each row
of the table is a launch:

    threads    of a block
    registers  of a thread (code.txt)
    shared     bytes of a block: static, dynamic and the kilobyte that the system takes
    per SM     blocks that run on a multiprocessor at once, and which resource limits them
    blocks     in the grid
    waves      blocks / (132 multiprocessors * per SM): up to 1, all blocks run at once; with 1.1, a
               second round has a tenth of the blocks of the first
    busy       blocks / (whole waves * 132 * per SM): the share of the places for blocks that are
               used. Memory can be saturated with less than all places

A launch whose block fits on no multiprocessor fails, with any table. A difference to the table
fails too: a kernel that takes some registers more may run as one block per multiprocessor instead
of two. --accept writes the table again; commit it together with the change.
"""
import argparse
import math
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
COLUMNS = ("launch", "kernel", "threads", "registers", "shared", "per SM", "limit", "blocks", "waves", "busy")
# Compute capability 9.0 (CUDA C++ Programming Guide, table of technical specifications); an H100 SXM
SMS, REGISTERS, SHARED, SHARED_BLOCK, THREADS, BLOCKS, WARPS = 132, 65536, 228 << 10, 227 << 10, 2048, 32, 64
REGISTER_UNIT, SHARED_UNIT, RESERVED = 256, 128, 1024  # registers of a warp, bytes of a block, the system's bytes
TYPES = {"short unsigned int": "unsigned short", "long int": "long"}


def kernels(path):
    """{kernel: (registers, shared bytes)} of code.txt"""
    found = {}
    with open(path) as f:
        for line in f.read().splitlines()[2:]:
            name, registers, shared = (cell.strip() for cell in line.split("|")[:3])
            found[name] = int(registers), int(shared)
    return found


def kernel_name(printed):
    """The kernel in a compiler's __PRETTY_FUNCTION__, as code.txt writes it."""
    name = re.search(r"KERNEL = [(&\s]*([^;\]]*?)\)?[;\]]", printed)[1].replace("(anonymous namespace)::", "")
    for of_gcc, plain in TYPES.items():
        name = name.replace(of_gcc, plain)
    return name


def round_up(x, unit):
    return (x + unit - 1) // unit * unit


def per_sm(threads, registers, shared):
    """Blocks on a multiprocessor, and the resource that limits them."""
    warps = (threads + 31) // 32
    limits = {
        "registers": REGISTERS // (round_up(registers * 32, REGISTER_UNIT) * warps),
        "shared": SHARED // round_up(shared, SHARED_UNIT) if shared <= SHARED_BLOCK + RESERVED else 0,
        "threads": min(THREADS // threads, WARPS // warps),
        "blocks": BLOCKS,
    }
    limit = min(limits, key=limits.get)
    return limits[limit], limit


def launches(program):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "launches")
        r = subprocess.run([program], env={**os.environ, "TARE_LAUNCHES": path}, capture_output=True, text=True)
        if r.returncode:
            sys.exit(f"tests/cuda/occupancy.py: {program} failed: {(r.stdout + r.stderr).strip()[-800:]}")
        if not os.path.exists(path):
            print(f"SKIP: {program} runs no launches in this build")
            sys.exit(77)
        with open(path) as f:
            return [line.split("|", 5) for line in f.read().splitlines()]


def row(group, operation, blocks, threads, dynamic, printed, known):
    name = kernel_name(printed)
    if name not in known and any(k.startswith(name + "<") for k in known):
        print(f"SKIP: the C++ compiler does not print template arguments of {name} (clang); gcc does")
        sys.exit(77)
    if name not in known:
        sys.exit(f"tests/cuda/occupancy.py: code.txt has no kernel {name}, which {group} launches for {operation}")
    blocks, threads, (registers, static) = int(blocks), int(threads), known[name]
    shared = max(static, RESERVED) + int(dynamic)  # code.txt's static bytes contain the reserved ones
    fit, limit = per_sm(threads, registers, shared)
    if not fit:
        sys.exit(f"tests/cuda/occupancy.py: {name}: a block of {threads} threads with {registers} registers and {shared} bytes of shared memory "
                 f"fits on no multiprocessor ({limit})")
    waves = blocks / (SMS * fit)
    cells = name, threads, registers, shared, fit, limit, blocks, f"{waves:.2f}", f"{100 * waves / math.ceil(waves):.0f} %"
    return (f"{group}: {operation}", *map(str, cells))


def render(rows):
    table = [COLUMNS, *rows]
    widths = [max(len(line[i]) for line in table) for i in range(len(COLUMNS))]
    lines = ["# H100 SXM, Qwen2.5-7B; made by tests/cuda/occupancy.py --accept, which explains the columns"]
    return lines + [" | ".join(c.ljust(w) for c, w in zip(line, widths)).rstrip() for line in table]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("program")
    p.add_argument("--accept", action="store_true", help="write the table again")
    p.add_argument("--code", default=os.path.join(HERE, "code.txt"))
    p.add_argument("--table", default=os.path.join(HERE, "occupancy.txt"))
    args = p.parse_args()
    known = kernels(args.code)
    lines = render([row(*launch, known) for launch in launches(args.program)])
    if args.accept:
        with open(args.table, "w") as f:
            f.write("\n".join(lines) + "\n")
    with open(args.table) as f:
        before = f.read().splitlines()
    changed = [f"- {line}" for line in before if line not in lines] + [f"+ {line}" for line in lines if line not in before]
    if changed:
        print("\n".join(changed), file=sys.stderr)
        sys.exit(f"if this is intended: tests/cuda/occupancy.py {args.program} --accept, and commit {os.path.relpath(args.table)} with the change")
    print(f"{len(lines) - 2} launches as in {os.path.relpath(args.table)}")


main()
