"""What the program shows in terminals of 40 to 120 columns: nothing is wider, one progress line is written over, colors are
those of the page. Usage: terminal_test.py THIMBLE_BINARY SOURCE_DIR"""

import fcntl
import glob
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unicodedata

thimble, source = os.path.realpath(sys.argv[1]), os.path.realpath(sys.argv[2])
WIDTHS = (40, 60, 80, 120)


def width_of(text):
    columns = 0
    for c in text:
        if not unicodedata.combining(c) and unicodedata.category(c) not in ("Cf", "Mn", "Me"):
            columns += 2 if unicodedata.east_asian_width(c) in "WF" else 1
    return columns


def run(columns, *arguments, paused=0, **environment):
    """The status and all that the program writes to a terminal of that many columns; it is paused soon for some seconds."""
    main, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    variables = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLORTERM", "COLORFGBG", "COLUMNS")}
    process = subprocess.Popen([thimble, *arguments], stdin=subprocess.DEVNULL, stdout=child, stderr=child, close_fds=True,
                               env=variables | {"TERM": "xterm", "LC_ALL": "C.UTF-8"} | environment)
    ended = os.pidfd_open(process.pid)
    if paused:
        time.sleep(0.2)
        process.send_signal(signal.SIGSTOP)
        time.sleep(paused)
        process.send_signal(signal.SIGCONT)
    output = b""
    # Keeps its end of the terminal open: a read that meets the last close of the other end may fail before it has read all.
    while main in select.select([main, ended], [], [])[0] or main in select.select([main], [], [], 0)[0]:
        output += os.read(main, 65536)
    for descriptor in (main, child, ended):
        os.close(descriptor)
    return process.wait(), output.decode().replace("\r\n", "\n")


def lines_of(output):
    """What is shown at some time in some line."""
    return [re.sub(r"\x1b\[[0-9;]*[mK]", "", line) for line in re.split(r"[\r\n]", output)]


def show(columns, *arguments, status=0, **environment):
    got, output = run(columns, *arguments, **environment)
    assert got == status, f"thimble {' '.join(arguments)}: exit status {got}, not {status}\n{output}"
    for line in lines_of(output):
        assert width_of(line) <= columns, f"thimble {' '.join(arguments)}: {width_of(line)} columns in {columns}:\n{line}"
    return output


def words(text):
    return re.sub(r"\s+", " ", text)


os.chdir(tempfile.mkdtemp())
wide = ["注意", "语言", "e\u0301te\u0301", "chien", "a-very-long-word-of-a-vocabulary", "\U0001f600"]
with open("data.tsv", "w") as file:
    for i in range(36):
        row = [wide[(i + k * (1 + i // len(wide))) % len(wide)] for k in range(10)]
        file.write(" ".join(row) + "\t" + " ".join(reversed(row)) + "\n")
with open("own.yaml", "w") as file:
    file.write("task: {name: file, file: data.tsv}\ndata: {train: 24, validation: 6, test: 6}\n"
               "model: {layers: 2, heads: 4, d_model: 16, d_ff: 32}\n"
               "train: {steps: 300, batch: 8, evaluate_every: 100, log_heads: true, threads: 1}\n")
with open("sweep.yaml", "w") as file:
    file.write(f"config: own.yaml\ngrid: {{model.heads: [1, 2], train.optimizer.lr: [1e-3, 5e-4]}}\nseeds: [7, 8]\n")
os.makedirs("configs/reproduce")
with open("configs/reproduce/shorter.yaml", "w") as file:
    file.write("statement: More steps lead to a lower loss than fewer steps, which is what every training run should show.\n"
               "source: this test\nkind: golden\nseeds: [7]\n"
               "runs:\n  short: {config: ../../own.yaml, set: {train.steps: 5}}\n  long: {config: ../../own.yaml}\n"
               "values:\n  early: {run: short, of: train, path: test.loss}\n"
               "  late_loss_of_the_longer_run: {run: long, of: train, path: test.loss}\n"
               "conditions:\n  - {value: late_loss_of_the_longer_run, below: early}\n")

subprocess.run([thimble, "train", f"{source}/configs/masked.yaml", "train.steps=300", "--out", "masked", "--quiet"], check=True)

for columns in WIDTHS:
    # One line of progress that is written over; what was measured stays.
    output = show(columns, "train", "own.yaml", "--out", f"run{columns}")
    updates = re.findall(r"\r\x1b\[K(step [^\r\n]*)", output)
    kept = [line.split("\r")[-1] for line in output.split("\n")]
    assert sum("/300  loss" in line for line in kept) <= 1, f"training floods the terminal:\n{output}"
    assert any(re.match(r"step \d+/300  loss ", line) for line in updates) or "step 300/300" in output, output
    assert "step 300/300  loss " in output and output.count("validation") >= 3, output
    for line in updates:
        assert width_of(line) < columns, f"the cursor leaves the line: {line}"
    # In 60 columns there is room for the speed only where it has few digits.
    assert columns == 60 or ("seq/s" in output) == (columns > 60), output
    assert columns < 60 or " left" in output, output

    # Tables, with what they had no room for.
    report = show(columns, "inspect", f"run{columns}", "--sequences", "10")
    head = next(line for line in report.split("\n") if "entropy" in line or "Δloss" in line)
    assert re.search(r"Δloss +Δtokens", head) and ("grad.imp" in head) == (columns > 60) and "\nhead label" in report, report
    assert (f"Not shown in {columns} columns: " in words(report)) == (columns <= 60) and len(re.findall(r"^[01]\.[0-3]  ", report, re.M)) == 8, report
    side = [line for line in report.split("\n") if line.count("head ") >= 2 and ":" not in line]
    assert side and max(map(width_of, side)) <= columns, f"maps beside each other in {columns} columns:\n{report}"
    curves = show(columns, "curves", f"run{columns}", "--follow")
    assert words(curves).count("o validation") == 2 and max(map(width_of, lines_of(curves))) == columns and re.search("[\u2801-\u28ff]", curves), curves
    assert max(map(ord, show(columns, "curves", f"run{columns}", LC_ALL="C"))) < 128
    kinds = words(show(columns, "inspect", "masked", "--sequences", "50", "--details"))
    assert len(re.findall(r"; target by kind: left neighbor 0\.\d{3}, right neighbor 0\.\d{3} ", kinds)) == 2, kinds
    own = show(columns, "trace", f"run{columns}", "注意 chien e\u0301te\u0301 \U0001f600")
    assert "注意" in own and "chien" in own and max(line.count("head ") for line in own.split("\n")) >= min(columns // 20, 3), own
    assert "tokens" in words(show(columns, "eval", f"run{columns}"))
    table = show(columns, "sweep", "sweep.yaml", "train.steps=5", "--out", f"sweep{columns}", "--jobs", "2")
    assert re.search(r"^ *(heads=2 lr=0?\.?[0-9e.-]+)? *2/2( +[0-9.]+)+$", table, re.M) and ("sequences %" in table.split("Not shown")[0]) == (columns > 40), table
    compared = show(columns, "compare", f"run{columns}", f"sweep{columns}/runs/001-heads_1-lr_1e-3-seed_7", "--sequences", "4")
    assert "matched by overlap" in words(compared) and "train.seed" in compared and "█" in compared, compared
    compared = show(columns, "compare", f"sweep{columns}")
    assert "  min" in compared and "train.optimizer.lr" in compared, compared
    reproduced = show(columns, "reproduce", "all", "--out", f"reproduce{columns}", "--jobs", "2")
    assert "late_loss_of_the_longer_run" in reproduced and "PASS" in reproduced, reproduced
    assert "which is what every training run should show." in words(show(columns, "reproduce", "--list"))
    for arguments in (["tasks"], ["tasks", "induction"], ["tasks", "--config", "own.yaml"], ["config", "cost", "own.yaml"],
                      ["train", "--help"]):
        show(columns, *arguments)
    shown = show(columns, "config", "show", "own.yaml")
    assert "# default" in shown and "# own.yaml:3" in shown
    with open("shown.yaml", "w") as file:
        file.write(shown)
    subprocess.run([thimble, "config", "show", "shown.yaml"], check=True, stdout=subprocess.DEVNULL)
    error = show(columns, "trace", f"run{columns}", "nothing", status=2)
    assert words(error).startswith("thimble: input: there is no token nothing"), error
    show(columns, "train", "own.yaml", "model.head=2", "train.stps=5", status=2)

# Work that takes more than two seconds shows one line, which is written over and removed at the end, unless it is quiet.
for columns in WIDTHS:
    output = show(columns, "bench", "own.yaml", "--steps", "20000", paused=2)
    line, *others = output.split("\r\x1b[K")[1:]
    assert line.startswith("timing steps") and "\n" not in line and not others[-1].startswith("timing"), output
    assert columns == 40 or re.fullmatch(r"timing steps: \d+ %, .* left", line), line
assert "timing steps" not in show(80, "bench", "own.yaml", "--steps", "20000", "--quiet", paused=2)

# A text with control characters: the terminal gets its tabs, and the rest escaped; elsewhere it is as it is.
with open("controls.txt", "w") as file:
    file.writelines(f"{i}\x1b[31m\t{i}\n" for i in range(200))
subprocess.run([thimble, "train", f"{source}/configs/names.yaml", "task.file=controls.txt", "train.steps=2", "train.batch=8",
                "train.schedule.warmup=0", "--out", "controls", "--quiet"], check=True)
for arguments in (["generate", "controls", "--prompt", "1\x1b[31m\t"], ["generate", "controls", "--prompt", "1\x1b[31m\t", "--samples", "2"],
                  ["eval", "controls", "--predictions", "-"], ["eval", "controls", "--predictions", "/dev/stdout"]):
    status, output = run(80, *arguments)
    assert status == 0 and "\x1b" not in output and "\t" in output and "\\u{1b}[31m" in output, (arguments, output)
    piped = subprocess.run([thimble, *arguments], check=True, capture_output=True, text=True).stdout
    assert "\x1b[31m" in piped and "u{1b}" not in piped, (arguments, piped)

# Where the locale has no UTF-8, all that is thimble's own is ASCII, on a terminal and elsewhere; what the user wrote stays.
ascii_only = {"LC_ALL": "C"}
subprocess.run([thimble, "train", f"{source}/configs/reverse.yaml", "train.steps=3", "train.schedule.warmup=0", "train.evaluate_every=1",
                "train.log_heads=true", "data.test=50", "--out", "poor", "--quiet"], check=True)
for arguments in (["inspect", "masked", "--sequences", "50"], ["inspect", "poor", "--sequences", "50"], ["eval", "poor"],
                  ["ablate", "masked", "--sequences", "50", "0.1"], ["compare", "masked", "poor"],
                  ["train", f"{source}/configs/reverse.yaml", "train.steps=5", "train.schedule.warmup=0", "--out", "poorer"], ["tasks"], ["inspect", "--help"],
                  ["config", "cost", "own.yaml"], ["bench", "own.yaml", "--steps", "1"], ["reproduce", "--list"]):
    for environment in (ascii_only, {"LC_ALL": "", "LC_CTYPE": "", "LANG": "de_DE.ISO-8859-1"}):
        output = show(80, *arguments, **environment)
        assert output.isascii(), re.findall("[^\0-\x7f]+", output)
        variables = {**os.environ, **environment, "TERM": "dumb"}
        if arguments[0] != "train":
            piped = subprocess.run([thimble, *arguments], stdin=subprocess.DEVNULL, capture_output=True, env=variables, check=True)
            assert max(piped.stdout + piped.stderr, default=0) < 0x80, piped
        subprocess.run(["rm", "-rf", "poorer"], check=True)
assert "d loss" in show(80, "inspect", "masked", "--sequences", "50", **ascii_only)
assert re.search(r"95 % CI [0-9.]+-[0-9.]+", words(show(80, "inspect", "masked", "--sequences", "50", "--details", **ascii_only)))
assert "Δloss" in show(80, "inspect", "masked", "--sequences", "50", LC_ALL="", LC_CTYPE="de_DE.utf8", LANG="C")
assert "注意" in show(80, "trace", "run80", "注意 chien", **ascii_only)
# Each character beyond ASCII in the source of what is printed has a form in the table, or is a bar that has a plain one.
table = re.search(r"kForms\[\] = {(.*?)};", open(f"{source}/src/program/cli/print.cpp").read(), re.S)[1]
for file in glob.glob(f"{source}/src/program/cli/**/*.cpp", recursive=True):
    other = set(re.findall("[^\0-\x7f▁-█]", open(file).read())) - set(table)
    assert not other, f"{file}: {other} without a form in ASCII"

# Elsewhere than on a terminal: whole lines of at most 80 columns, about twenty.
plain = subprocess.run([thimble, "train", "own.yaml", "--out", "plain"], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                       stdout=subprocess.DEVNULL, check=True, text=True).stderr
steps = re.findall(r"^step \d+/300 .*", plain, re.M)
assert 20 <= len(steps) <= 22 and "\r" not in plain and "\x1b" not in plain, plain
assert all(width_of(line) <= 80 for line in plain.split("\n")), plain

# Colors: those between the stops of the page's scale, where the terminal has them and nobody objects.
css = open(f"{source}/src/inspect/report/page/page.css").read()
scales = [[tuple(int(stop[i:i + 2], 16) for i in (0, 2, 4)) for stop in re.findall(r"--scale-\d: #(\w{6})", theme)]
          for theme in css.split('data-theme="dark"')]
light, dark = scales
inspect = ("trace", "run80", "注意 chien")


def between(color, scale):
    for low, high in zip(scale, scale[1:]):
        for k in range(1001):
            if all(abs(a + (b - a) * k / 1000 - c) <= 1 for a, b, c in zip(low, high, color)):
                return True
    return False


for background, scale in (("15;0", dark), ("0;15", light), ("", dark)):
    output = show(80, *inspect, COLORTERM="truecolor", COLORFGBG=background)
    colors = {tuple(map(int, color)) for color in re.findall(r"\x1b\[48;2;(\d+);(\d+);(\d+)m", output)}
    assert len(colors) > 5 and {scale[0], scale[-1]} <= colors, colors
    assert all(between(color, scale) for color in colors), colors
for environment in ({"TERM": "xterm-256color"}, {"TERM": "dumb", "COLORTERM": "truecolor"}, {"NO_COLOR": "1", "COLORTERM": "truecolor"}):
    output = show(80, *inspect, **environment)
    assert "\x1b" not in output and "@ is 1" in output, f"{environment}: {output}"
print("terminal_test: ok")
