"""Completes a wheel that auditwheel repaired: adds the licences of its libraries and an SBOM, and writes it with the same bytes for the same contents.
usage: wheel.py WHEEL FOLDER      writes FOLDER/(name of WHEEL) and FOLDER/tare_rlvr-VERSION.cdx.json

Needs SOURCE_DATE_EPOCH, and dpkg-query for the packages that the libraries and the build came from.

In the wheel's .dist-info:
    licenses/libraries.txt         each library with its package, source and licence
    licenses/PACKAGE.copyright     Debian's copyright file of each package
    sboms/tare_rlvr.cdx.json       the SBOM, CycloneDX 1.6

The SBOM lists the libraries found in the wheel, what the program loads from the machine when it is there (scope optional), and the
packages of tools/needs.list that the build used (scope excluded)."""
import base64
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import uuid
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
LOADED = [("libopenmpi3", "several ranks"), ("libmicrohttpd12", "tare serve"), ("python3", "verifiers in Python")]
INTRODUCTION = """Shared libraries in this wheel (folder tare_rlvr.libs). Each is the file of a Debian package, with its name and its
paths to the others changed by auditwheel. The full texts are in the files PACKAGE.copyright next to this one.
Sources: https://snapshot.debian.org/package/SOURCE/VERSION/. A library under the LGPL can be replaced: replace
the file by your build.

"""


def query(package):
    """Returns [package, version, source package, source version, architecture], or None if it is not installed."""
    fields = "${Package}\t${Version}\t${source:Package}\t${source:Version}\t${Architecture}\t${db:Status-Status}\n"
    found = subprocess.run(["dpkg-query", "-W", "-f", fields, package], capture_output=True, text=True)
    rows = [r.split("\t") for r in found.stdout.splitlines()]
    return next((r[:5] for r in rows if r[5] == "installed"), None)


def owner(name):
    """Returns the package that has the file of this name in a folder of libraries."""
    found = subprocess.run(["dpkg-query", "-S", f"*/{name}"], capture_output=True, text=True).stdout
    packages = sorted({line.split(":")[0] for line in found.splitlines() if "/lib/" in line})
    if len(packages) != 1:
        sys.exit(f"wheel.py: {name}: must be in one Debian package, is in: {' '.join(packages) or 'none'}")
    return query(packages[0])


def debian(row, scope):
    """Returns the component of an SBOM for a row of query()."""
    package, version, source, source_version, architecture = row
    release = dict(line.rstrip().split("=", 1) for line in open("/etc/os-release") if "=" in line)
    system = release["ID"].strip('"'), release.get("VERSION_ID", "").strip('"')
    purl = f"pkg:deb/{system[0]}/{package}@{version.replace('+', '%2B').replace(':', '%3A')}?arch={architecture}&distro={system[0]}-{system[1]}"
    return {"type": "library", "bom-ref": purl, "name": package, "version": version, "scope": scope, "purl": purl,
            "properties": [{"name": "debian:source", "value": f"{source} {source_version}"}]}


def libraries(files, version):
    """Returns (components, files to add, table) for the libraries in the wheel {name: bytes}."""
    licences = dict(line.split(None, 1) for line in (HERE / "licences.list").read_text().splitlines() if line and line[0] != "#")
    components, added, table = [], {}, ""
    for path in sorted(p for p in files if ".libs/" in p):
        name = re.sub(r"-[0-9a-f]{8}(?=\.so)", "", path.split("/")[-1])
        stem = name.split(".so")[0]
        if stem not in licences:
            sys.exit(f"wheel.py: {path}: the licence of {stem} is unknown; add it to packaging/licences.list if it may be distributed in a wheel")
        licence = licences[stem].strip()
        if licence == "tare":
            licence, package = "Apache-2.0", ["tare", version, "tare", version, ""]
            component = {"type": "library", "bom-ref": f"placeholder-{stem}", "name": f"placeholder for {stem}", "version": version, "scope": "required"}
        else:
            package = owner(name)
            component = debian(package, "required")
            added[f"licenses/{package[0]}.copyright"] = pathlib.Path(f"/usr/share/doc/{package[0]}/copyright").read_bytes()
        component["licenses"] = [{"expression": licence}]
        component["hashes"] = [{"alg": "SHA-256", "content": hashlib.sha256(files[path]).hexdigest()}]
        component["evidence"] = {"occurrences": [{"location": path}]}
        components.append(component)
        table += f"{path}\n    package {package[0]} {package[1]}, source {package[2]} {package[3]}, licence {licence}\n"
    return components, added, table


def build_packages():
    """Returns the components for the installed packages of tools/needs.list that a build uses."""
    rows = [[c.strip() for c in line.split("|")] for line in (HERE / "../tools/needs.list").read_text().splitlines() if "|" in line and line[0] != "#"]
    found = [query(r[0].rstrip("?")) for r in rows if r[1] in ("build", "deb")]
    return [debian(r, "excluded") for r in found if r]


def program(files):
    """Returns the components for the programs and shared objects of tare itself."""
    own = sorted(p for p in files if files[p][:4] == b"\x7fELF" and ".libs/" not in p)
    return [{"type": "file", "bom-ref": p, "name": p, "scope": "required", "licenses": [{"expression": "Apache-2.0"}],
             "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(files[p]).hexdigest()}]} for p in own]


def write(path, files, modes, when):
    """Writes the wheel: sorted, .dist-info last and its RECORD at the very end, with fixed dates and modes."""
    def rank(name):
        return name.endswith("/RECORD"), ".dist-info/" in name, name
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out:
        for name in sorted(files, key=rank):
            info = zipfile.ZipInfo(name, when)
            info.create_system, info.compress_type = 3, zipfile.ZIP_DEFLATED
            info.external_attr = (0o100755 if modes[name] & 0o100 else 0o100644) << 16
            out.writestr(info, files[name])


def main():
    wheel, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    when = time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))
    with zipfile.ZipFile(wheel) as z:
        entries = [i for i in z.infolist() if not i.is_dir()]
        files = {i.filename: z.read(i) for i in entries}
        modes = {i.filename: i.external_attr >> 16 for i in entries}
    version = wheel.name.split("-")[1]
    about = f"tare_rlvr-{version}.dist-info/"
    del files[about + "RECORD"]
    # auditwheel's list lacks libraries, because it asks dpkg for paths in /lib
    files.pop(about + "sboms/auditwheel.cdx.json", None)
    components, added, table = libraries(files, version)
    if not components:
        sys.exit(f"wheel.py: {wheel}: has no libraries; was it repaired by auditwheel?")
    loaded = []
    for name, use in LOADED:
        component = {"type": "library", "bom-ref": f"optional-{name}", "name": name, "scope": "optional", "description": f"not in the wheel; loaded for: {use}"}
        loaded.append(component)
    main_ref = f"pkg:pypi/tare-rlvr@{version}"
    contents = hashlib.sha256(b"".join(hashlib.sha256(n.encode() + b"\0" + files[n]).digest() for n in sorted(files))).hexdigest()
    own = program(files)
    bom = {"$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json", "bomFormat": "CycloneDX", "specVersion": "1.6",
           "serialNumber": "urn:uuid:" + str(uuid.uuid5(uuid.NAMESPACE_URL, main_ref + "#" + contents)), "version": 1,
           "metadata": {"timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", when),
                        "component": {"type": "application", "bom-ref": main_ref, "name": "tare-rlvr", "version": version, "purl": main_ref,
                                      "licenses": [{"expression": "Apache-2.0"}]}},
           "components": components + own + loaded + build_packages(),
           "dependencies": [{"ref": main_ref, "dependsOn": [c["bom-ref"] for c in components + own]}]}
    text = (json.dumps(bom, indent=1, sort_keys=True) + "\n").encode()
    for name, data in {**added, "licenses/libraries.txt": (INTRODUCTION + table).encode(), "sboms/tare_rlvr.cdx.json": text}.items():
        files[about + name], modes[about + name] = data, 0o644
    record = ""
    for name in sorted(files):
        digest = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(files[name])}\n"
    files[about + "RECORD"], modes[about + "RECORD"] = (record + about + "RECORD,,\n").encode(), 0o644
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / wheel.name, files, modes, when[:6])
    (folder / f"tare_rlvr-{version}.cdx.json").write_bytes(text)


main()
