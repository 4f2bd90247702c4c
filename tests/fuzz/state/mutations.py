"""Damage to the files of a run. Each function changes something below case.root and returns what it did, or None if there
is nothing of that kind to change."""
import os
import re
import socket
import stat

import normal

JUNK = (b"\n", b"junk\n", b"\0" * 16, b'{"step":1,"split":"train","loss":0.1}\n', b"\x1b[31mred\n", b"# a comment\n")
NAMES = ("junk", "notes.txt", "step-007.safetensors", "step-99999999999999999999.safetensors", "step--1.safetensors",
         "\x1b[31mred.safetensors", "\u202egnp.safetensors", "step-3.safetensors.1-0.tmp", "a b.yaml", "-")
CHECKPOINTS = "run/checkpoints"


class Mutation:
    """What was changed: the paths, and what the oracle must know about it."""

    def __init__(self, kind, path, detail="", also=()):
        self.kind, self.path, self.detail = kind, path, detail
        self.touched = {path, *also}
        self.keys = None      # of the config that were set: {key: new value}
        self.deleted = set()  # files that are gone
        self.place = "run"    # where the run is now
        self.allowed = False  # whether the docs allow it
        self.moded = False  # whether it has another mode
        self.unreadable = False  # whether the file cannot be read, or is none

    def __str__(self):
        return f"{self.kind} {self.path} {self.detail}".strip()


def read(case, path):
    with open(case.at(path), "rb") as file:
        return file.read()


def write(case, path, data):
    with open(case.at(path), "wb") as file:
        file.write(data)


def pick(rng, case, pattern="."):
    """Returns a file of the case that may be damaged, or None."""
    found = [path for path in case.files() if re.search(pattern, path)]
    return rng.choice(found) if found else None


def change_bytes(rng, case):
    """One byte or one digit changed, added or taken away."""
    path = pick(rng, case)
    data = bytearray(read(case, path)) if path else b""
    if not data:
        return None
    kind = rng.choice(("byte", "bit", "digit", "digit", "insert", "drop"))
    at = rng.randrange(len(data))
    if path.endswith(".safetensors") and rng.random() < 0.7:
        at = rng.randrange(min(len(data), 8 + int.from_bytes(data[:8], "little")))
    before = bytes(data[at:at + 1])
    if kind == "digit":
        digits = [match.start() for match in re.finditer(rb"[0-9]", data)]
        if not digits:
            return None
        at = rng.choice(digits)
        before = bytes(data[at:at + 1])
        data[at] = rng.choice([digit for digit in b"0123456789" if digit != data[at]])
    elif kind == "byte":
        data[at] = rng.choice([byte for byte in range(256) if byte != data[at]])
    elif kind == "bit":
        data[at] ^= 1 << rng.randrange(8)
    elif kind == "insert":
        data.insert(at, rng.choice(b"0123456789 \n#x:-,}\x1b\x00\xff"))
    else:
        del data[at]
    write(case, path, data)
    return Mutation(kind, path, f"at {at}: {before!r} -> {bytes(data[at:at + 1])!r}")


def change_size(rng, case):
    """A file that is cut, emptied, zeroed, longer or not there."""
    path = pick(rng, case)
    if not path:
        return None
    data = read(case, path)
    kind = rng.choice(("truncate", "empty", "zeros", "zero tail", "append", "delete", "byte order mark", "CRLF"))
    if kind == "truncate":
        data = data[:rng.randrange(len(data) + 1)]
    elif kind == "empty":
        data = b""
    elif kind == "zeros":
        data = bytes(len(data))
    elif kind == "zero tail":
        data = data[:len(data) // 2] + bytes(len(data) - len(data) // 2)
    elif kind == "append":
        data += rng.choice(JUNK + (data[-40:], data))
    elif kind == "byte order mark":
        data = b"\xef\xbb\xbf" + data
    elif kind == "CRLF":
        data = data.replace(b"\n", b"\r\n")
    if data == read(case, path) and kind != "delete":
        return None
    mutation = Mutation(kind, path, f"{len(data)} bytes")
    if kind == "delete":
        os.remove(case.at(path))
        mutation.deleted = {path}
    else:
        write(case, path, data)
    return mutation


def change_lines(rng, case):
    """Lines of metrics.jsonl or of a data file that are gone, doubled, in another order, or have another time."""
    path = pick(rng, case, r"metrics\.jsonl$|^(data|validation)\.")
    lines = read(case, path).splitlines(True) if path else []
    if len(lines) < 2:
        return None
    kind = rng.choice(("line gone", "line doubled", "lines swapped", "time", "last line gone"))
    at = rng.randrange(len(lines) - 1)
    if kind == "line gone":
        del lines[at]
    elif kind == "line doubled":
        lines.insert(at, lines[at])
    elif kind == "lines swapped":
        if lines[at] == lines[at + 1]:
            return None
        lines[at], lines[at + 1] = lines[at + 1], lines[at]
    elif kind == "last line gone":
        del lines[-1]
    else:
        changed = re.sub(rb'("seconds":\d+\.)(\d)', lambda m: m[1] + b"%d" % ((int(m[2]) + 1) % 10), lines[at])
        if changed == lines[at]:
            return None
        lines[at] = changed
    write(case, path, b"".join(lines))
    return Mutation(kind, path, f"line {at + 1}")


def foreign_file(rng, case):
    """A file of another run, or of the same run at another time, in place of one."""
    donor = rng.choice(sorted(case.donors))
    names = [name for name in case.donor_files(donor) if f"run/{name}" in case.files()]
    if not names:
        return None
    name = rng.choice(names)
    data, path = case.donor_read(donor, name), f"run/{name}"
    if data == read(case, path):
        return None
    write(case, path, data)
    return Mutation(f"{donor}'s", path)


def moved_file(rng, case):
    """Two files of the run exchanged, or one under a second name."""
    path = pick(rng, case, r"^run/")
    if not path:
        return None
    folder, name = os.path.split(path)
    if rng.random() < 0.4:
        other = pick(rng, case, rf"^run/.*{re.escape(os.path.splitext(name)[1])}$")
        if not other or read(case, other) == read(case, path):
            return None
        first, second = read(case, path), read(case, other)
        write(case, path, second)
        write(case, other, first)
        return Mutation("exchanged", path, f"with {other}", (other,))
    names = [name + ".damaged", name + ".1-0.tmp"]
    if name.endswith(".safetensors"):
        names += ["best.safetensors", "final.safetensors", "step-2.safetensors", f"step-{rng.randint(1, 99)}.safetensors"]
    target = f"{folder}/{rng.choice(names)}"
    if os.path.lexists(case.at(target)) and (target not in case.files() or read(case, target) == read(case, path)):
        return None
    data = read(case, path)
    write(case, target, data)
    return Mutation("copied", target, f"from {path}")


def unknown_file(rng, case):
    """A file that no run has."""
    folder = rng.choice(("run", CHECKPOINTS))
    path = f"{folder}/{rng.choice(NAMES)}"
    if not os.path.isdir(case.at(folder)) or os.path.lexists(case.at(path)):
        return None
    if rng.random() < 0.2:
        os.mkdir(case.at(path))
        write(case, path + "/inside", b"mine")
        return Mutation("unknown folder", path, "", (path + "/inside",))
    write(case, path, rng.choice(JUNK))
    return Mutation("unknown file", path)


def link(rng, case):
    """A link, a pipe, a folder and so on in place of a file."""
    path = pick(rng, case, r"^run/") if rng.random() < 0.85 else "run/.lock"
    if not path:
        return None
    kind = rng.choice(("symbolic link", "hard link", "dangling link", "loop", "link to /dev/zero", "link to /dev/full",
                       "pipe", "folder", "socket", "hard link to another run's"))
    if path == "run/.lock" and kind.startswith("hard"):
        return None
    target, outside = case.at(path), case.at("outside")
    os.makedirs(outside, exist_ok=True)
    moved = os.path.join(outside, os.path.basename(path))
    if kind == "hard link to another run's":
        other = case.at("sister" + path[3:])
        if not os.path.isfile(other):
            return None
        if os.path.lexists(target):
            os.remove(target)
        os.link(other, target)
        return Mutation(kind, path)
    if os.path.lexists(target):
        os.rename(target, moved)
    else:
        write(case, "outside/" + os.path.basename(path), b"mine, not a lock")
    if kind == "symbolic link":
        os.symlink(os.path.relpath(moved, os.path.dirname(target)), target)
    elif kind == "hard link":
        os.link(moved, target)
    elif kind == "dangling link":
        os.symlink(os.path.join(outside, "nothing"), target)
    elif kind == "loop":
        os.symlink(os.path.basename(target), target)
    elif kind.startswith("link to"):
        os.symlink(kind.split()[-1], target)
    elif kind == "pipe":
        os.mkfifo(target)
    elif kind == "folder":
        os.mkdir(target)
    else:
        with socket.socket(socket.AF_UNIX) as end:
            before = os.open(".", os.O_RDONLY)
            os.chdir(os.path.dirname(target))  # names of sockets are short
            end.bind(os.path.basename(target))
            os.fchdir(before)
            os.close(before)
    mutation = Mutation(kind, path)
    mutation.unreadable = kind not in ("symbolic link", "hard link")
    return mutation


def permission(rng, case):
    """Another mode of a file or folder."""
    folders = [path for path in ("run", CHECKPOINTS) if os.path.isdir(case.at(path))]
    path = rng.choice(folders) if folders and rng.random() < 0.3 else pick(rng, case)
    if not path:
        return None
    is_folder = os.path.isdir(case.at(path))
    mode = rng.choice((0o000, 0o555, 0o300, 0o700) if is_folder else (0o000, 0o444, 0o200, 0o600, 0o640))
    if stat.S_IMODE(os.stat(case.at(path)).st_mode) == mode:
        return None
    os.chmod(case.at(path), mode)
    mutation = Mutation(f"mode {mode:04o}", path)
    mutation.moded, mutation.unreadable = True, not mode & 0o400
    return mutation


def config_key(rng, case):
    """Another value of a key in the run's config.yaml."""
    if "run/config.yaml" not in case.files():
        return None
    text = read(case, "run/config.yaml").decode("utf-8", "replace")
    values = normal.config_values(text)
    numbers = [key for key, value in values.items() if re.fullmatch(r"[-0-9.e]+", value)]
    flags = [key for key, value in values.items() if value in ("true", "false")]
    if not numbers:
        return None
    key = "train.seed" if rng.random() < 0.3 and "train.seed" in numbers else rng.choice(numbers + flags)
    old = values[key]
    if old in ("true", "false"):
        new = "false" if old == "true" else "true"
    else:
        new = rng.choice((str(int(float(old)) + rng.randint(1, 4)), "1", "2", "0.5", "0.002"))
    at, names = 0, key.split(".")
    for depth, name in enumerate(names):
        found = re.compile(rf"^{'  ' * depth}{name}:", re.M).search(text, at)
        if not found:
            return None  # the file was changed before
        at = found.end()
    if normal.as_number(new) == normal.as_number(old) or not text.startswith(" " + old, at):
        return None
    write(case, "run/config.yaml", (text[:at] + " " + new + text[at + 1 + len(old):]).encode())
    mutation = Mutation("key", "run/config.yaml", f"{key}: {old} -> {new}")
    mutation.keys = {key: new}
    return mutation


KINDS = ((change_bytes, 6), (change_size, 4), (change_lines, 2), (foreign_file, 4), (moved_file, 3), (unknown_file, 1),
         (link, 3), (permission, 2), (config_key, 7))


def mutate(rng, case):
    """Makes one change, of a kind drawn by weight."""
    functions, weights = zip(*KINDS)
    for _ in range(20):
        try:
            mutation = rng.choices(functions, weights)[0](rng, case)
        except OSError:  # in a folder that is closed by now, or no folder any more
            continue
        if mutation is not None:
            return mutation
    return None
