#!/usr/bin/env python3
"""Looks at the machine code of every CUDA kernel and compares it with the table beside this file, so that a loss nobody would see is seen.

    tests/cuda/code.py LIBTARE_CUDA.SO [--accept]      wants cuobjdump and nvdisasm (the CUDA toolkit, or PyPI's nvidia-cuda-cuobjdump and nvidia-cuda-nvdisasm)

A kernel that runs out of registers, keeps an array in local memory, loads four bytes where it loaded sixteen, or gets an atomic operation or a number in
double that nobody meant to write is still right, and slow; a test of its results stays green. A load that is taken for constant where the kernel writes the
same memory may be wrong, by chance, on a GPU alone: the cache that it goes through need not see the store. So those are counted apart. A row of the table is a kernel:

    registers        a thread's; 65,536 a multiprocessor bound how many threads run there at once
    shared           bytes of shared memory with a size known to the compiler (what a launch asks for comes on top)
    f64              instructions in double: the statistics' reductions, nothing else
    atomics          kinds of atomic operation, with their number; those without a result (RED, REDG) and copies that add (UBLKRED, UTMAREDG) among them
    global loads     by bytes, with their number; "a" marks asynchronous copies into shared memory (cp.async), "c" loads of what the compiler takes for
                     constant while the kernel runs (ld.global.nc, from __restrict__ on a pointer to const)
    global stores    by bytes, with their number
    mma              matrix multiply-accumulate instructions
    before the wait  accesses to global memory before the wait for the launch in front (kernels/cuda/cuda.h, launch_wait); "-": it does not wait

Before the wait there may be asynchronous copies alone, of weights: the products' first stages. A compiler that moved a load there would be silent garbage,
so this is a rule too.

Products of a warpgroup (HGMMA) run beside each other only where the compiler sees that nobody touches their sums; else it waits for each one, and says so in
a line that is no warning. Then each has a WARPGROUP.ARRIVE and a WARPGROUP.DEPBAR of its own. It also leaves out a change of a warp's registers (setmaxnreg) that it
cannot place. Both are right and slow by a factor, so two products and more to an ARRIVE, fewer waits than products, and one USETMAXREG each for more and for fewer
registers are a rule.

No kernel may use local memory, that is spill a register or index an array there; this is a rule, not a row. So are these of the PTX in the library, from
which the driver of a newer GPU makes its machine code: every kernel is there, and each addition, multiplication and division names its rounding, since
the driver may fuse a multiplication with an addition where none is named, and bits would be others there. The table was made by the compiler that its
first line names. Another compiler chooses other registers: then the rule alone is checked, and it is said. A change that is meant is accepted by --accept,
which writes the table anew; its difference belongs into the same commit.
"""
import argparse
import collections
import os
import re
import shutil
import subprocess
import sys

ARCHITECTURE = "sm_90a"
TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "code.txt")
COLUMNS = ("registers", "shared", "f64", "atomics", "global loads", "global stores", "mma", "before the wait")
WAIT = "before the wait"  # the key of what a kernel has before its first ACQBULK, griddepcontrol.wait
DOUBLE = re.compile(r"D(ADD|MUL|FMA|SETP|MNMX)$")


def run(*command):
    r = subprocess.run(command, capture_output=True, text=True)
    if r.returncode:
        sys.exit(f"tests/cuda/code.py: {' '.join(command)} failed: {r.stderr.strip()[-800:]}")
    return r.stdout


def compiler():
    """The version of nvcc's assembler, which chooses registers."""
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not os.path.exists(nvcc):
        sys.exit("tests/cuda/code.py: nvcc is not on PATH: its version says which table to compare with")
    return re.search(r"V(\d+\.\d+\.\d+)", run(nvcc, "--version"))[1]


def resources(library):
    """{mangled name: (registers, shared bytes, local bytes)}"""
    found, name = {}, None
    for line in run("cuobjdump", "-res-usage", "-arch", ARCHITECTURE, library).splitlines():
        start = re.match(r"\s*Function (\S+):", line)
        usage = re.search(r"REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)", line)
        if start:
            name = start[1]
        elif usage and name:
            found[name] = (int(usage[1]), int(usage[3]), int(usage[2]) + int(usage[4]))
            name = None
    return found


def instructions(library):
    """{mangled name: {instruction with its modifiers: number}}"""
    found, name = {}, None
    for line in run("cuobjdump", "-sass", "-arch", ARCHITECTURE, library).splitlines():
        start = re.match(r"\s*Function : (\S+)", line)
        step = re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)", line)
        if start:
            name = start[1]
            found[name] = collections.Counter()
        elif step and name:
            if step[1] == "ACQBULK":
                found[name].setdefault(WAIT, dict(found[name]))
            found[name][step[1]] += 1
    return found


def warpgroup_faults(steps):
    """What is wrong with a kernel whose products are of a warpgroup (wgmma.cuh)."""
    def number(*starts):
        return sum(n for step, n in steps.items() if step.startswith(starts))

    products, fences, waits = number("HGMMA"), number("WARPGROUP.ARRIVE"), number("WARPGROUP.DEPBAR")
    if products and (2 * fences > products or waits >= products):
        yield f"{products} products of a warpgroup have {fences} fences and {waits} waits: the compiler makes them one after the other"
    if products and not (number("USETMAXREG.TRY_ALLOC") and number("USETMAXREG.DEALLOC")):
        yield "products of a warpgroup without more registers for who computes and fewer for who loads: the compiler left setmaxnreg out"


def ptx_faults(library, kernels):
    """What is wrong with the PTX of the library for somebody who has nothing else of it."""
    text = run("cuobjdump", "-ptx", library)
    there = set(re.findall(r"\.entry\s+(\w+)", text))
    yield from (f"{plain([k])[k]}: there is no PTX of it, so a GPU newer than the library's machine code cannot run it" for k in sorted(kernels - there))
    loose = collections.Counter(re.findall(r"^\s*(?:@!?%\w+\s+)?((?:add|sub|mul|mad|fma|div|rcp|sqrt)(?:\.ftz|\.sat|\.approx|\.full)*\.f(?:32|64))\b", text, re.M))
    yield from (f"{step} stands {n} times in the PTX without .rn: a driver may fuse it, or round otherwise" for step, n in sorted(loose.items()))


ATOMIC = ("ATOM", "ATOMG", "ATOMS", "RED", "REDG", "UBLKRED", "UTMAREDG")
ACCESS = re.compile(rf"({'|'.join(ATOMIC)}|LDG|STG|LDGSTS|LD|ST|UBLKCP|UTMALDG|UTMASTG)(\.|$)")


def width(parts):
    """Bytes of a load or store from its modifiers; a plain one is of four."""
    for part in parts:
        if part in ("128", "64"):
            return int(part) // 8
        if part in ("U8", "S8"):
            return 1
        if part in ("U16", "S16"):
            return 2
    return 4


def summed(counts):
    return " ".join(f"{key}:{counts[key]}" for key in sorted(counts, key=str)) or "-"


def row(usage, steps):
    loads, stores, atomics, double, mma, local = (collections.Counter() for _ in range(6))
    before = steps.pop(WAIT, None)
    early = "-" if before is None else summed({s: n for s, n in before.items() if ACCESS.match(s)}) if any(map(ACCESS.match, before)) else "0"
    for step, n in steps.items():
        name, *parts = step.split(".")
        if name == "LDG":
            loads[f"{width(parts)}{'c' if 'CONSTANT' in parts else ''}"] += n
        elif name == "LDGSTS":
            loads[f"{width(parts)}a"] += n
        elif name == "STG":
            stores[str(width(parts))] += n
        elif name in ATOMIC:
            atomics[step] += n
        elif name in ("LDL", "STL"):
            local[name] += n
        elif name in ("HMMA", "HGMMA", "IMMA"):
            mma[name] += n
        elif DOUBLE.match(name):
            double[name] += n
    cells = (str(usage[0]), str(usage[1]), str(sum(double.values())), summed(atomics), summed(loads), summed(stores), str(sum(mma.values())), early)
    return cells, usage[2] or sum(local.values())


def plain(names):
    """Mangled names as the source has them, without the arguments' types."""
    text = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True).stdout.splitlines()
    return {m: re.sub(r"^void ", "", re.sub(r"\(.*", "", re.sub(r"\(anonymous namespace\)::|\((int|bool)\)", "", t))) for m, t in zip(names, text)}


def read(path):
    if not os.path.exists(path):
        return None, {}
    with open(path) as f:
        first, _, *lines = f.read().splitlines()
    rows = {}
    for line in lines:
        name, *cells = (c.strip() for c in line.split("|"))
        rows[name] = tuple(cells)
    return re.search(r"nvcc ([0-9.]+)", first)[1], rows


def write(path, version, rows):
    table = [("kernel", *COLUMNS), *((name, *rows[name]) for name in sorted(rows))]
    widths = [max(len(line[i]) for line in table) for i in range(len(table[0]))]
    with open(path, "w") as f:
        f.write(f"# {ARCHITECTURE}, nvcc {version}; made by tests/cuda/code.py --accept, which says what the columns are\n")
        for line in table:
            f.write(" | ".join(c.ljust(w) for c, w in zip(line, widths)).rstrip() + "\n")


def differences(before, now):
    for name in sorted(before.keys() | now.keys()):
        if name not in now:
            yield f"{name}: is no longer there"
        elif name not in before:
            yield f"{name}: is new"
        else:
            for column, a, b in zip(COLUMNS, before[name], now[name]):
                if a != b:
                    yield f"{name}: {column} was {a}, is {b}"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("library")
    p.add_argument("--accept", action="store_true", help="write the table anew")
    p.add_argument("--table", default=TABLE)
    args = p.parse_args()
    for tool in ("cuobjdump", "nvdisasm", "c++filt"):
        if not shutil.which(tool):
            sys.exit(f"tests/cuda/code.py: {tool} is not on PATH (the CUDA toolkit, or pip install nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm; binutils)")
    usage, steps = resources(args.library), instructions(args.library)
    if not usage or usage.keys() != steps.keys():
        sys.exit(f"tests/cuda/code.py: {args.library}: no code for {ARCHITECTURE}, or cuobjdump's two lists of kernels differ")
    names, rows, spilt = plain(list(usage)), {}, []
    for mangled, name in names.items():
        if name in rows:
            sys.exit(f"tests/cuda/code.py: two kernels are called {name}")
        rows[name], local = row(usage[mangled], steps[mangled])
        if local:
            spilt.append(name)
    faults = [f"{name}: uses local memory (spilled registers, or an array that is indexed)" for name in spilt]
    faults += [f"{name}: {fault}" for mangled, name in names.items() for fault in warpgroup_faults(steps[mangled])]
    faults += [f"{name}: {cells[-1]} before it waits for the launch in front" for name, cells in rows.items()
               if cells[-1] not in ("-", "0") and not all(step.startswith("LDGSTS.") for step in cells[-1].split())]
    faults += ptx_faults(args.library, usage.keys())
    version = compiler()
    if args.accept:
        write(args.table, version, rows)
    wanted, before = read(args.table)
    changed = list(differences(before, rows)) if wanted == version else []
    for line in faults + changed:
        print(line, file=sys.stderr)
    if changed:
        print(f"if this is meant: tests/cuda/code.py {args.library} --accept, and commit {os.path.relpath(args.table)} with the change", file=sys.stderr)
    if faults or changed:
        sys.exit(1)
    if wanted != version:
        print(f"{len(rows)} kernels, none with local memory, all with PTX; the table is of nvcc {wanted} and this is {version}, so it was not compared")
    else:
        print(f"{len(rows)} kernels as in {os.path.relpath(args.table)}, none with local memory, all with PTX")


main()
