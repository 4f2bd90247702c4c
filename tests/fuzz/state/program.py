"""Runs thimble and reads what is on the disk before and after."""
import collections
import contextlib
import os
import re
import shutil
import signal
import stat
import subprocess
import time

# What a terminal could obey, or what shows text in another order than it has.
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
# Times, and sums over lines that contain times.
TIMES = re.compile(r'"(seconds|checksum|metrics)": ?("[0-9a-f]*"|[-+.0-9e]+|\{[^}]*\})')


class Result:
    """How an execution ended. `status` is negative after a signal; `hung` if it had to be killed."""

    def __init__(self, arguments, status, out, err, hung):
        self.arguments, self.status, self.hung = arguments, status, hung
        self.raw_out, self.raw_err = out, err
        self.out = TIMES.sub(r'"\1": 0', out.decode("utf-8", "replace"))
        self.err = err.decode("utf-8", "replace")
        self.message = " ".join(self.err.split())  # lines are wrapped at words

    def problem(self):
        """Returns what no execution may do, or None."""
        if self.hung:
            return "hangs"
        if self.status < 0:
            return f"ends with signal {signal.Signals(-self.status).name}"
        if self.status not in (0, 1, 2, 3, 130):
            return f"ends with exit status {self.status}"
        for raw in (self.raw_out, self.raw_err):
            try:
                text = raw.decode("utf-8")
            except UnicodeDecodeError:
                return "prints bytes that are not UTF-8"
            if CONTROL.search(text):
                return "prints control characters"
        return None


class Program:
    """The program, with the number of its executions."""

    def __init__(self, binary, library, timeout):
        self.binary, self.library, self.timeout = binary, library, timeout
        self.executions = 0
        self.verdicts = collections.Counter()  # what had to happen on damaged and changed runs
        self.outcomes = collections.Counter()  # of commands on damaged runs that did what they must
        self.environment = {"PATH": "/usr/bin:/bin", "OPENBLAS_NUM_THREADS": "1", "LC_ALL": "C.UTF-8",
                            "HOME": "/nonexistent"}

    def run(self, arguments, root, faults=None, count=None, kill=None):
        """Executes the program in the folder `root`. `faults` is a plan of faults.cpp, `count` the file of its counts,
        `kill` a signal and the seconds after which it is sent."""
        environment = self.environment
        if faults or count:
            # A command of the user may start others, as sweep does; faults are those of the command itself.
            environment = dict(environment, LD_PRELOAD=self.library, FAULT_COMMAND=arguments[0])
            if faults:
                environment["FAULTS"] = faults
            if count:
                environment["FAULT_COUNT"] = count
        self.executions += 1
        process = subprocess.Popen([self.binary, *arguments], cwd=root, env=environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        hung = False
        try:
            if kill is not None:
                time.sleep(kill[1])
                process.send_signal(kill[0])
            out, err = process.communicate(timeout=self.timeout)
        except subprocess.TimeoutExpired:
            hung = True
            self.end(process.pid)
            out, err = process.communicate()
        except BaseException:
            self.end(process.pid)
            process.wait()
            raise
        if process.returncode < 0:
            self.end(process.pid)
        return Result(arguments, process.returncode, out, err, hung)

    @staticmethod
    def end(group):
        """Ends what a killed command has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


def snapshot(root, without=()):
    """Returns {path: (kind, mode, content)} of everything below a folder."""
    found = {}

    def visit(folder, prefix):
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            found[prefix + "?"] = ("unreadable", 0, error.errno)
            return
        for entry in entries:
            path = prefix + entry.name
            if path in without:
                continue
            status = entry.stat(follow_symlinks=False)
            mode = stat.S_IMODE(status.st_mode)
            if entry.is_symlink():
                found[path] = ("link", 0, os.readlink(entry.path))
            elif entry.is_dir(follow_symlinks=False):
                found[path] = ("folder", mode, None)
                visit(entry.path, path + "/")
            elif entry.is_file(follow_symlinks=False):
                found[path] = ("file", mode, content(entry.path, status))
            else:
                found[path] = ("special", mode, None)

    visit(root, "")
    return found


def content(path, status):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return (status.st_size, status.st_mtime_ns, status.st_ino)


def changes(before, after):
    """Returns the paths that differ, each with a sign: + new, - gone, * other content or mode."""
    out = []
    for path in sorted(before.keys() | after.keys()):
        if path not in before:
            out.append("+" + path)
        elif path not in after:
            out.append("-" + path)
        elif before[path] != after[path]:
            out.append("*" + path)
    return out


def remove(folder):
    """Removes a folder, whatever its modes are."""
    def retry(function, path, _):
        os.chmod(os.path.dirname(path), 0o700)
        if os.path.isdir(path) and not os.path.islink(path):
            os.chmod(path, 0o700)
        function(path)
    for attempt in range(3):
        if not os.path.lexists(folder):
            return
        try:
            for parent, folders, _ in os.walk(folder):
                for name in folders:
                    path = os.path.join(parent, name)
                    if not os.path.islink(path):
                        os.chmod(path, 0o700)
            shutil.rmtree(folder)
        except OSError:
            shutil.rmtree(folder, onerror=retry)


def copy(source, target):
    shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
