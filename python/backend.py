"""Builds the wheel: what `nmad install` puts below a prefix, packed so that pip puts it below its own, and the module
`newmadeleine`.

Programs go to `bin` of the environment, all else (`lib`, `include`, `share`) to the folders of the same name. The list
of files is that of `nmad install`; nothing here knows what it holds. A wheel has no symbolic links, so the
installation is made without. The module is the package `newmadeleine` of this folder around a library that cargo builds
from `module`.

Settings (`pip wheel --config-settings profile=dev`): the profile of cargo, dist if nothing is said.
"""

import base64
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAME = "newmadeleine"
SUMMARY = "Messages over every network of a node at once: a module, the command nmad and a C library"
# The oldest Python whose stable binary interface has buffers.
PYTHON = (3, 11)
# The receipt of `nmad install`; pip writes its own.
RECEIPT = "share/nmad/manifest.txt"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """PEP 517: builds, installs into a folder of its own, packs that; the file's name."""
    profile = (config_settings or {}).get("profile", "dist")
    with tempfile.TemporaryDirectory() as folder:
        prefix = Path(folder)
        install(prefix, profile)
        paths = sorted(path for path in prefix.rglob("*") if path.is_file())
        files = {str(path.relative_to(prefix)): path.read_bytes() for path in paths}
    files.pop(RECEIPT, None)
    return pack(files, module(profile), Path(wheel_directory))


def build_sdist(sdist_directory, config_settings=None):
    """PEP 517. The source is a whole workspace of Rust, not this folder."""
    raise RuntimeError("there is no source distribution: build the wheel in a clone of the repository")


def cargo():
    """The command."""
    command = os.environ.get("CARGO", "cargo")
    if shutil.which(command) is None:
        raise RuntimeError("cargo is not there; a Rust toolchain is needed (https://rustup.rs)")
    return command


def module(profile):
    """The package of the module, by path: its texts, and the library that cargo builds."""
    # With all members: dependencies of the module alone would have other features and be built anew.
    words = ["build", "--profile", profile, "--workspace", "--exclude", "nmad-tidy", "--lib"]
    words += ["--message-format", "json-render-diagnostics"]
    built = subprocess.run([cargo(), *words], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    artifacts = [json.loads(line) for line in built.stdout.splitlines()]
    libraries = [file for artifact in artifacts if artifact.get("target", {}).get("name") == "nmad_python"
                 for file in artifact.get("filenames", [])]
    folder = ROOT / "python" / NAME
    files = {f"{NAME}/{path.name}": path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "_native.abi3.so"
        shutil.copyfile(libraries[0], library)
        strip(library)
        files[f"{NAME}/{library.name}"] = library.read_bytes()
    return files


def strip(path):
    """Takes away what only debuggers read."""
    if shutil.which("strip"):
        subprocess.run(["strip", "--strip-unneeded", str(path)], check=True)


def install(prefix, profile):
    """Has cargo build the command, and the command install itself."""
    environment = {name: value for name, value in os.environ.items() if name != "DESTDIR"}
    words = ["run", "--profile", profile, "--bin", "nmad", "--"]
    words += ["install", "--no-links", "--prefix", str(prefix)]
    subprocess.run([cargo(), *words], cwd=ROOT, env=environment, check=True)


def is_machine_code(content):
    return content.startswith(b"\x7fELF")


def version():
    """That of the workspace."""
    text = (ROOT / "Cargo.toml").read_text()
    return re.search(r'^\[workspace\.package\]\nversion = "([^"]+)"', text, re.MULTILINE).group(1)


def tag(contents):
    """Where the wheel runs: everywhere with the C library whose symbols it asks for, or a later one (PEP 600)."""
    asked = [re.findall(rb"GLIBC_(\d+)\.(\d+)", content) for content in contents if is_machine_code(content)]
    newest = max((int(major), int(minor)) for symbols in asked for major, minor in symbols)
    return "cp{}{}-abi3-manylinux_{}_{}_{}".format(*PYTHON, *newest, platform.machine())


def pack(files, package, folder):
    """Writes the wheel (PEP 427): files below the prefix, and those of a package."""
    name = f"{NAME}-{version()}"
    tags = tag([*files.values(), *package.values()])
    entries = dict(package)
    for path, content in files.items():
        kind = "scripts/" + path[len("bin/"):] if path.startswith("bin/") else "data/" + path
        entries[f"{name}.data/{kind}"] = content
    metadata = f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {version()}\nSummary: {SUMMARY}\n"
    metadata += "License: MIT OR Apache-2.0\nRequires-Python: >={}.{}\n".format(*PYTHON)
    entries[f"{name}.dist-info/METADATA"] = metadata.encode()
    wheel = f"Wheel-Version: 1.0\nGenerator: {NAME}\nRoot-Is-Purelib: false\nTag: {tags}\n"
    entries[f"{name}.dist-info/WHEEL"] = wheel.encode()
    record = f"{name}.dist-info/RECORD"
    lines = [f"{path},sha256={digest(content)},{len(content)}" for path, content in entries.items()]
    entries[record] = "\n".join([*lines, f"{record},,", ""]).encode()
    file = f"{name}-{tags}.whl"
    with zipfile.ZipFile(folder / file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in entries.items():
            # A fixed time: the same content makes the same wheel.
            entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            is_program = ".data/scripts/" in path
            entry.external_attr = (0o100755 if is_program or is_machine_code(content) else 0o100644) << 16
            archive.writestr(entry, content)
    return file


def digest(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
