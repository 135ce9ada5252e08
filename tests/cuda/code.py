#!/usr/bin/env python3
"""Compares the machine code of every CUDA kernel with the table in code.txt, to catch silent losses.

    tests/cuda/code.py LIBTARE_CUDA.SO [--accept]      requires cuobjdump and nvdisasm (the CUDA toolkit, or
                                                       PyPI's nvidia-cuda-cuobjdump and nvidia-cuda-nvdisasm)

A kernel that runs out of registers, keeps an array in local memory, loads four bytes instead of sixteen,
or gains an unintended atomic operation or double-precision number is still correct, but slow; tests of
its results stay green. A load that the compiler treats as constant, although the kernel writes the same
memory, may be wrong by chance, and only on a GPU: the cache that it uses need not see the store. So
those are counted separately. Each row of the table is a kernel:

    registers        per thread; a multiprocessor's 65,536 limit how many threads run there at once
    shared           bytes of shared memory whose size the compiler knows (a launch may request more)
    f64              instructions in double: only for the statistics' reductions
    atomics          kinds of atomic operation and their number, including those without a result (RED,
                     REDG) and copies that add (UBLKRED, UTMAREDG)
    global loads     by bytes, with their number; "a" marks asynchronous copies into shared memory
                     (cp.async), "c" loads of memory that the compiler treats as constant while the kernel
                     runs (ld.global.nc, from __restrict__ on a pointer to const)
    global stores    by bytes, with their number
    mma              matrix multiply-accumulate instructions
    before the wait  accesses to global memory before the wait for the preceding launch
                     (kernels/cuda/cuda.h, launch_wait); "-": the kernel does not wait

Rules, checked with any compiler:
- Before the wait there may only be asynchronous copies of weights: the products' first stages. If a
  compiler moved a load there, results would be silently wrong.
- Products of a warpgroup (HGMMA) overlap only if the compiler can prove that their sums are not accessed;
  otherwise it waits for each one, which it reports in a line that is not a warning. Then each has a
  separate WARPGROUP.ARRIVE and WARPGROUP.DEPBAR. The compiler also drops a change of a warp's registers
  (setmaxnreg) that it cannot place. Both are correct but several times slower, so the rule is: at least
  two products per ARRIVE, fewer waits than products, and one USETMAXREG each for more and for fewer
  registers.
- No kernel may use local memory, that is, spill a register or index an array there.
- The PTX in the library, which the driver of a newer GPU compiles, contains every kernel, and each
  addition, multiplication and division names its rounding. Otherwise the driver may fuse a
  multiplication with an addition, and results would differ there.

The first line of the table names the compiler that made it. Another compiler allocates registers
differently: then only the rules are checked, and a message reports it. --accept writes the table again
after an intended change; commit it together with the change.
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
WAIT = "before the wait"  # key of the instructions before a kernel's first ACQBULK (griddepcontrol.wait)
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
        sys.exit("tests/cuda/code.py: nvcc is not on PATH; its version selects the table to compare with")
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
    """Faults of a kernel with products of a warpgroup (wgmma.cuh)."""
    def number(*starts):
        return sum(n for step, n in steps.items() if step.startswith(starts))

    products, fences, waits = number("HGMMA"), number("WARPGROUP.ARRIVE"), number("WARPGROUP.DEPBAR")
    if products and (2 * fences > products or waits >= products):
        yield f"{products} products of a warpgroup have {fences} fences and {waits} waits: the compiler serialises them"
    if products and not (number("USETMAXREG.TRY_ALLOC") and number("USETMAXREG.DEALLOC")):
        yield "products of a warpgroup without more registers for consumers and fewer for the producer: the compiler dropped setmaxnreg"


def ptx_faults(library, kernels):
    """Faults of the library's PTX, on which newer GPUs depend."""
    text = run("cuobjdump", "-ptx", library)
    there = set(re.findall(r"\.entry\s+(\w+)", text))
    yield from (f"{plain([k])[k]}: its PTX is missing, so a GPU newer than the library's machine code cannot run it" for k in sorted(kernels - there))
    loose = collections.Counter(re.findall(r"^\s*(?:@!?%\w+\s+)?((?:add|sub|mul|mad|fma|div|rcp|sqrt)(?:\.ftz|\.sat|\.approx|\.full)*\.f(?:32|64))\b", text, re.M))
    yield from (f"{step} occurs {n} times in the PTX without .rn: a driver may fuse it or round differently" for step, n in sorted(loose.items()))


ATOMIC = ("ATOM", "ATOMG", "ATOMS", "RED", "REDG", "UBLKRED", "UTMAREDG")
ACCESS = re.compile(rf"({'|'.join(ATOMIC)}|LDG|STG|LDGSTS|LD|ST|UBLKCP|UTMALDG|UTMASTG)(\.|$)")


def width(parts):
    """Bytes of a load or store, from its modifiers; the default is four."""
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
    """Mangled names as written in the source, without argument types."""
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
        f.write(f"# {ARCHITECTURE}, nvcc {version}; made by tests/cuda/code.py --accept, which explains the columns\n")
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
    p.add_argument("--accept", action="store_true", help="write the table again")
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
    faults = [f"{name}: uses local memory (spilled registers, or an indexed array)" for name in spilt]
    faults += [f"{name}: {fault}" for mangled, name in names.items() for fault in warpgroup_faults(steps[mangled])]
    faults += [f"{name}: {cells[-1]} before it waits for the preceding launch" for name, cells in rows.items()
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
        print(f"if this is intended: tests/cuda/code.py {args.library} --accept, and commit {os.path.relpath(args.table)} with the change", file=sys.stderr)
    if faults or changed:
        sys.exit(1)
    if wanted != version:
        print(f"{len(rows)} kernels, none with local memory, all with PTX; the table was made by nvcc {wanted}, not {version}, so it was not compared")
    else:
        print(f"{len(rows)} kernels as in {os.path.relpath(args.table)}, none with local memory, all with PTX")


main()
