#!/usr/bin/env python3
"""Makes a wheel of the Python package, a statically linked program and its configs; the same bytes from the same files.

Usage: wheel.py STAGE MACHINE FOLDER; STAGE has bin/thimble and share/thimble, MACHINE is x86_64 or aarch64.
"""

import base64
import hashlib
import pathlib
import re
import sys
import zipfile

stage, machine, folder = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
source = pathlib.Path(__file__).resolve().parent.parent
version = re.search(r'^__version__ = "(.*)"', (source / "python/thimble/_program.py").read_text(), re.M)[1]
name = f"thimble-{version}"
tag = f"py3-none-manylinux_2_17_{machine}"

metadata = f"""Metadata-Version: 2.1
Name: thimble
Version: {version}
Summary: Train tiny transformers and read what their attention heads do
License: MIT
Requires-Python: >=3.9
Provides-Extra: numpy
Requires-Dist: numpy; extra == "numpy"
Description-Content-Type: text/markdown

"""
files = {}  # by name in the wheel: content, and whether it is a program
for path in sorted((source / "python/thimble").glob("*")):
    if path.suffix in (".py", ".typed"):
        files[f"thimble/{path.name}"] = (path.read_bytes(), False)
files[f"{name}.data/scripts/thimble"] = ((stage / "bin/thimble").read_bytes(), True)
for path in sorted((stage / "share").rglob("*")):
    if path.is_file():
        files[f"{name}.data/data/{path.relative_to(stage)}"] = (path.read_bytes(), False)
info = f"{name}.dist-info"
files[f"{info}/LICENSE"] = ((source / "LICENSE").read_bytes(), False)
files[f"{info}/METADATA"] = ((metadata + (source / "docs/python.md").read_text()).encode(), False)
files[f"{info}/WHEEL"] = (f"Wheel-Version: 1.0\nGenerator: thimble\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(), False)


def record(path, content):
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(content)}\n"


lines = "".join(record(path, content) for path, (content, _) in files.items()) + f"{info}/RECORD,,\n"
files[f"{info}/RECORD"] = (lines.encode(), False)

folder.mkdir(parents=True, exist_ok=True)
wheel = folder / f"{name}-{tag}.whl"
with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out:
    for path, (content, program) in files.items():
        entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
        entry.external_attr = (0o100755 if program else 0o100644) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        out.writestr(entry, content)
print(wheel)
