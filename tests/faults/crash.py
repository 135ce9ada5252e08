#!/usr/bin/env python3
"""Every state that a crash of the machine could leave, made from a record of system calls (record.c). crash_try.py tries them.

Between two syncs a crash may leave any mixture of the unsynced changes. So only the moments before each sync, and the end, have
to be considered; a state of an earlier moment is one of theirs. The units that may be missing on the disk at such a moment:
  strict (POSIX)   each change of a folder's name table since that folder was synced: any subset, in any order; of each file the
                   data since it was synced: none, all, all but torn at 4 KiB (missing pages are zeros, whatever the file's
                   size), or the data of an earlier moment
  ext4 (ordered)   the changes of all name tables in order, up to some moment after the last sync of any file; data: none, all
                   or a beginning, never a hole, because the data is written before the size
All 2^m subsets of m pending units are made if m <= 4. Otherwise: none, all, each alone, all but each, each beginning of them in
order, those of each process alone (one rank's host goes down, and the other hosts' data reaches their shared disk), and 8
subsets by seed.
Equal states count once, by names and contents. Files that are never read (NAME.tmp, -shm, folders .tmp- and .old-) do not count.
"""
import functools
import hashlib
import itertools
import os
import random
import re
import shutil

PAGE = 4096


class Node:
    """A file or folder with its contents by version. A file's are bytes; a folder's, (name, node or None) changes."""

    def __init__(self, folder):
        self.folder = folder
        self.versions = [(-1, {} if folder else b"")] # (moment, content)
        self.synced = -1 # moment: up to here it is on the disk

    def at(self, moment):
        return next(v for m, v in reversed(self.versions) if m <= moment)


def load(folder):
    """The tree that existed before the record begins, all of it on the disk, and its inodes."""
    inodes, top = {}, Node(True)

    def fill(path, node):
        for entry in os.scandir(path):
            child = Node(entry.is_dir(follow_symlinks=False))
            node.versions[0][1][entry.name] = child
            inodes[entry.inode()] = child
            if child.folder:
                fill(entry.path, child)
            else:
                with open(entry.path, "rb") as f:
                    child.versions[0] = (-1, f.read())

    if folder:
        fill(folder, top)
    return inodes, top


def records(path):
    with open(path, "rb") as f:
        while head := f.readline():
            kind, process, inode, *rest = head.decode("utf-8", "surrogateescape").rstrip("\n").split(" ", 3)
            rest = rest[0] if rest else ""
            data = b""
            if kind == "W":
                at, n = map(int, rest.split())
                data, rest = f.read(n), at
                f.read(1)
            yield kind, int(process), int(inode), rest, data


class History:
    """The tree at every moment of the record, and the times of the syncs."""

    def __init__(self, log, root, inodes, top, plant):
        self.top, self.syncs, self.changes = top, [], []  # changes: (moment, folder, {name: node or None})
        # With plant: a program that does not sync these.
        self.names, self.moments, self.plant = {}, 0, re.compile(plant) if plant else None
        self.believed = [] # all syncs, including those that plant skips
        # The moment of a change of names, or a file -> the process that made it: ranks may be on
        # separate hosts.
        self.hosts = {}
        inodes[os.stat(root).st_ino] = top
        self.name_all(top, "")
        for moment, (kind, process, inode, rest, data) in enumerate(records(log)):
            self.moments = moment + 1
            getattr(self, "on_" + kind)(moment, inodes, inode, rest, data)
            if kind in "WT":
                self.hosts[inodes.get(inode)] = process
            elif kind not in "SF":
                self.hosts[moment] = process

    def name_all(self, node, prefix):
        for name, child in node.versions[0][1].items():
            self.names[child] = prefix + name
            if child.folder:
                self.name_all(child, prefix + name + "/")

    def name(self, node, path):
        self.names[node] = path
        for child_name, child in node.versions[-1][1].items() if node.folder else ():
            self.name(child, path + "/" + child_name)

    def find(self, path):
        node = self.top
        parts = path.split("/")
        for part in parts[:-1]:
            node = node.versions[-1][1][part]
        return node, parts[-1]

    def change(self, moment, path, node):
        folder, name = self.find(path)
        entries = dict(folder.versions[-1][1])
        if node is None:
            entries.pop(name, None)
        else:
            entries[name] = node
            self.name(node, path)
        folder.versions.append((moment, entries))
        return folder, name

    def on_C(self, moment, inodes, inode, path, _):
        inodes[inode] = Node(False)
        inodes[inode].synced = moment - 1
        folder, name = self.change(moment, path, inodes[inode])
        self.changes.append((moment, folder, {name: inodes[inode]}))

    def on_D(self, moment, inodes, inode, path, _):
        inodes[inode] = Node(True)
        inodes[inode].synced = moment
        folder, name = self.change(moment, path, inodes[inode])
        self.changes.append((moment, folder, {name: inodes[inode]}))

    def on_U(self, moment, inodes, inode, path, _):
        folder, name = self.change(moment, path, None)
        self.changes.append((moment, folder, {name: None}))

    def on_R(self, moment, inodes, inode, paths, _):
        a, b = paths.split("\t")
        source, name = self.find(a)
        node = source.versions[-1][1][name]
        old, name = self.change(moment, a, None)
        new, other = self.change(moment, b, node)
        if old is new: # one change: both names or neither
            self.changes.append((moment, old, {name: None, other: node}))
        else:
            self.changes += [(moment, old, {name: None}), (moment, new, {other: node})]

    def on_W(self, moment, inodes, inode, at, data):
        node = inodes.get(inode)
        if node and not node.folder:
            was = node.versions[-1][1]
            node.versions.append((moment, was[:at].ljust(at, b"\0") + data + was[at + len(data):]))

    def on_T(self, moment, inodes, inode, size, _):
        node = inodes.get(inode)
        if node and not node.folder:
            node.versions.append((moment, node.versions[-1][1][:int(size)].ljust(int(size), b"\0")))

    def on_S(self, moment, inodes, inode, _, __):
        if inode in inodes:
            self.sync(moment, inodes[inode])

    def on_F(self, moment, inodes, inode, _, __):
        for node in dict.fromkeys(inodes.values()):
            self.sync(moment, node)

    def sync(self, moment, node):
        path = "." if node is self.top else self.names.get(node, "?")
        self.believed.append((moment, node, path))
        if not self.plant or not self.plant.search(path):
            self.syncs.append((moment, node, path))

    # ---- states

    def tree(self, top, folders, data):
        """{path: bytes, or None for a folder}. folders: node -> {name: node}; data: node -> bytes."""
        out = {}

        def walk(node, prefix):
            for name, child in folders[node].items():
                out[prefix + name] = None if child.folder else data(child)
                if child.folder:
                    walk(child, prefix + name + "/")

        walk(top, "")
        return out

    def whole(self, moment):
        every = AllOf(lambda node: node.at(moment))
        return self.tree(self.top, every, lambda node: node.at(moment))


class AllOf(dict):
    def __init__(self, f):
        super().__init__()
        self.f = f

    def __missing__(self, key):
        return self.f(key)


def torn(old, new, rng):
    """The newer data that may be on the disk when pages of 4 KiB arrive separately, in any order."""
    pages = max(len(old), len(new)) // PAGE + 1
    if old == new:
        return []

    def mix(keep):
        out = bytearray(old[:len(new)].ljust(len(new), b"\0"))
        for k in range(pages):
            if keep(k):
                out[k * PAGE:(k + 1) * PAGE] = new[k * PAGE:(k + 1) * PAGE]
        return bytes(out)

    chosen = {k for k in range(pages) if rng.random() < 0.5}
    return [mix(lambda k: False), mix(lambda k: k < pages - 1), mix(lambda k: k == pages - 1), mix(lambda k: k in chosen)]


def subsets(units, rng, hosts):
    """Sets of units that are on the disk. hosts: the process of each unit; one host may go down alone, and the others' data reaches the disk."""
    m = len(units)
    if m <= 4:
        return [set(c) for n in range(m + 1) for c in itertools.combinations(range(m), n)]
    every = set(range(m))
    some = [set(), every] + [{k} for k in every] + [every - {k} for k in every] + [set(range(k)) for k in range(2, m - 1)]
    some += [{k for k in every if hosts[k] == host} for host in sorted(set(hosts))] if len(set(hosts)) > 1 else []
    return some + [{k for k in every if rng.random() < 0.5} for _ in range(8)]


def nodes_of(history):
    seen = {history.top}
    for _, folder, change in history.changes:
        seen.add(folder)
        seen.update(n for n in change.values() if n)

    def walk(node):
        for child in node.versions[0][1].values():
            seen.add(child)
            if child.folder:
                walk(child)

    walk(history.top)
    return seen


def states(history, rules, rng):
    """(moment, description of the missing units, tree) for every moment before a sync and the end; syncs before that moment are done."""
    moments = sorted({m for m, _, _ in history.syncs} | {history.moments})
    nodes = sorted(nodes_of(history), key=lambda n: history.names.get(n, ""))
    synced = {n: -1 for n in nodes}
    done = iter(sorted(history.syncs, key=lambda s: s[0]))
    pending_sync = next(done, None)
    for moment in moments:
        last = max(synced.values())
        files = [n for n in nodes if not n.folder and n.at(moment) != n.at(synced[n]) and any(synced[n] < m < moment for m, _ in n.versions)]
        if rules == "strict":
            changes = [c for c in history.changes if synced[c[1]] < c[0] < moment]
            yield from strict(history, moment, synced, changes, files, rng)
        else:
            yield from ordered(history, moment, synced, [c for c in history.changes if last < c[0] < moment], files, rng)
        while pending_sync and pending_sync[0] <= moment:
            synced[pending_sync[1]] = pending_sync[0]
            pending_sync = next(done, None)


def apply(history, moment, kept, durable):
    """Each folder's names: those on the disk, and the kept changes."""
    folders = {}
    for when, folder, change in history.changes:
        if when < moment and ((when, id(folder)) in kept or durable(when, folder)):
            entries = folders.setdefault(folder, dict(folder.versions[0][1]))
            for name, node in change.items():
                if node is None:
                    entries.pop(name, None)
                else:
                    entries[name] = node
    return AllOf(lambda node: folders.get(node, node.versions[0][1]))


def strict(history, moment, synced, changes, files, rng):
    units = [("name", c) for c in changes] + [("data", n) for n in files]
    hosts = [history.hosts.get(x[0] if kind == "name" else x, 0) for kind, x in units]
    for chosen in subsets(units, rng, hosts):
        kept = {(c[0], id(c[1])) for k, (kind, c) in enumerate(units) if kind == "name" and k in chosen}
        folders = apply(history, moment, kept, lambda when, folder: when <= synced[folder])
        full = {c for k, (kind, c) in enumerate(units) if kind == "data" and k in chosen}

        def data(node, other=None):
            if other and other[0] is node:
                return other[1]
            return node.at(moment if node in full or node not in files else synced[node])

        yield moment, "kept %d of %d" % (len(chosen), len(units)), history.tree(history.top, folders, data)
        if len(chosen) == len(units): # one file torn, the others complete
            for node in files:
                versions = [v for m, v in node.versions if synced[node] < m < moment]
                for content in torn(node.at(synced[node]), node.at(moment), rng) + versions[:-1][-3:]:
                    yield moment, "torn: " + history.names.get(node, "?"), history.tree(history.top, folders, lambda n, o=(node, content): data(n, o))


def ordered(history, moment, synced, changes, files, rng):
    for cut in range(len(changes) + 1):
        kept = {(c[0], id(c[1])) for c in changes[:cut]}
        last = max(synced.values())
        folders = apply(history, moment, kept, lambda when, folder: when <= last)
        choices = [lambda n: n.at(synced[n]), lambda n: n.at(moment)]
        for node in files:
            old, new = node.at(synced[node]), node.at(moment)
            choices.append(lambda n, x=node: n.at(synced[n] if n is x else moment))
            if new.startswith(old) and len(new) // PAGE > len(old) // PAGE:
                piece = new[:len(new) // PAGE * PAGE]
                choices.append(lambda n, x=node, p=piece: p if n is x else n.at(moment))
        for choose in choices:
            yield moment, "the first %d of %d names" % (cut, len(changes)), history.tree(
                history.top, folders, lambda n: choose(n) if n in files else n.at(moment))


@functools.cache
def digest(content):
    return hashlib.sha256(content).hexdigest()


def key(tree):
    h = hashlib.sha256()
    for path in sorted(tree):
        parts = path.split("/")
        if any(re.search(r"\.(tmp|old)-", p) for p in parts[:-1]):
            continue
        unread = re.search(r"\.tmp$|-shm$", path)
        content = tree[path]
        h.update(("%s\0%s\0" % (path, "folder" if content is None else "" if unread else digest(content))).encode("utf-8", "surrogateescape"))
    return h.digest()


def put(tree, to):
    shutil.rmtree(to, ignore_errors=True)
    os.makedirs(to)
    for path in sorted(tree):
        if tree[path] is None:
            os.makedirs(os.path.join(to, path), exist_ok=True)
        else:
            with open(os.path.join(to, path), "wb") as f:
                f.write(tree[path])


def read(folder):
    """The tree in the folder, in the form of History.tree."""
    out = {}
    for base, folders, files in os.walk(folder):
        for name in folders:
            out[os.path.relpath(os.path.join(base, name), folder)] = None
        for name in files:
            with open(os.path.join(base, name), "rb") as f:
                out[os.path.relpath(os.path.join(base, name), folder)] = f.read()
    return out
