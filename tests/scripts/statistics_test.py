"""Every number in the JSON of every command but bench is in statistics.txt, and states of how many it is a statistic; on sequences
of different lengths, each equals plain NumPy. Usage: statistics_test.py THIMBLE_BINARY SOURCE_DIR"""

import collections
import itertools
import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile

import numpy

from plain_encoder import Pass, Results, change, effect, load, ratio, scores
from statistics_list import Report, leaves

thimble, source = (pathlib.Path(x).resolve() for x in sys.argv[1:3])
HEADS = 3
ALL = list(itertools.product(range(2), range(HEADS)))
CONFIG = """task: {name: file, file: train.tsv, validation_file: validation.tsv, test_file: test.tsv}
model: {d_model: 12, heads: 3, layers: 2, d_ff: 16, norm: pre}
train: {steps: 40, batch: 10, threads: 1, evaluate_every: 20, checkpoint_every: 20, checkpoint_series: true,
        log_heads: true, precision: float64, optimizer: {lr: 0.01}}
"""
FROZEN = ("train.steps=1", "train.optimizer.lr=1.0e-30", "train.log_heads=false", "train.checkpoint_series=false")
PAIR = """task: {name: file, file: pairs.tsv}
model: {kind: encoder_decoder, d_model: 8, heads: 2, layers: 1, d_ff: 8, output: {per: next}}
train: {steps: 10, batch: 10, threads: 1, log_heads: true}
"""
SWEEP = """config: config.yaml
list:
  - {train.log_heads: false, train.steps: 5, train.evaluate_every: 5}
grid: {model.heads: [1, 2]}
seeds: [1, 2, 3]
"""
EXPERIMENT = """statement: The loss of a value that no run has is not measured.
source: this test
kind: control
seeds: [1, 2]
runs:
  one: {config: ../config.yaml, set: {train.steps: 5, train.log_heads: false}}
values:
  loss: {run: one, of: train, path: test.loss}
  accuracy: {run: one, of: train, path: test.accuracy}
conditions:
  - {value: loss, at_least: 0}
"""
FIRST_UNTRAINED = 0x756E7472_61696E00  # the seed of the first model whose overlap is the chance level of compare


def run(*arguments):
    result = subprocess.run([thimble, *map(str, arguments)], capture_output=True, text=True, cwd=work)
    assert result.returncode == 0, (arguments, result.stderr)
    return result.stdout


def report(section, *arguments):
    return Report(section, json.loads(run(*arguments, "--quiet", "--json", "-")))


def write(name, lengths, answer=lambda line: line[::-1]):
    """Writes lines of the letters a to g, whose token ids are 0 to 6; returns inputs and targets."""
    lines = [[drawn.randrange(7) for _ in range(length)] for length in lengths]
    lines[0][:7] = range(len(lines[0]))[:7]  # ids in order of appearance
    text = lambda tokens: " ".join("abcdefg"[t] for t in tokens)
    (work / name).write_text("".join(f"{text(line)}\t{text(answer(line))}\n" for line in lines))
    return lines, [answer(line) for line in lines]


def frozen(seed):
    run("train", "config.yaml", "--out", f"frozen{seed}", "--quiet", f"train.seed={seed}", *FROZEN)
    return load(work / f"frozen{seed}/checkpoints/final.safetensors")


def passes(weights, lines, replaced=lambda n: {}):
    return [Pass(weights, line, HEADS, replaced(n)) for n, line in enumerate(lines)]


def results(weights, split, replaced=lambda n: {}):
    return Results([p.log_probabilities for p in passes(weights, split[0], replaced)], split[1])


def without(heads):
    return lambda n: {head: 0 for head in heads}


def most_frequent(split):
    return collections.Counter(t for target in split[1] for t in target)


def evaluation(r, errors=True):
    """The numbers of an evaluation, with the standard errors of ratios."""
    found = {"loss": ratio(r.loss, r.labels)[0], "accuracy": ratio(r.right, r.labels)[0],
             "sequence_accuracy": (r.right == r.labels).mean(), "sequences": len(r.labels), "labels": r.labels.sum()}
    return found | ({"loss_error": ratio(r.loss, r.labels)[1], "accuracy_error": ratio(r.right, r.labels)[1]} if errors else {})


def check_evaluations():
    evaluated, one = report("eval", "eval", "run"), report("eval", "eval", "run", "--sequences", 1)
    result = Report("run", json.loads((work / "run/summary.json").read_text()))
    usual = most_frequent(train).most_common(1)[0][0]
    for name, split in (("validation", validation), ("test", test)):
        r = results(final, split)
        for of in (evaluated, result):
            of.same(name, evaluation(r) | {"chance": most_frequent(split)[usual] / r.labels.sum()})
        one.same(name, {"sequences": 1, "loss_error": None, "accuracy_error": None})
    best = min((evaluation(results(weights[step], validation))["loss"], step) for step in (20, 40))
    result.same("best", {"loss": best[0], "step": best[1]})


def check_curves(inspected):
    lines = [json.loads(line) for line in (work / "run/metrics.jsonl").read_text().splitlines()]
    batch = json.loads(run("tasks", "--config", "config.yaml", "--split", "train", "--examples", 10, "--json", "-"))["examples"]
    batch = [e["input"] for e in batch], [e["target"] for e in batch]
    usual = most_frequent(train).most_common(1)[0][0]
    for line in lines:
        logged = Report("heads" if line["split"] == "heads" else "metrics", line)
        if line["split"] == "train" and line["step"] == 1:
            logged.same("", evaluation(results(weights[0], batch), False))
        elif line["split"] == "validation":
            r = results(weights[line["step"]], validation)
            logged.same("", evaluation(r) | {"chance": most_frequent(validation)[usual] / r.labels.sum()})
        elif line["split"] == "heads" and line["step"] in weights:
            check_head_log(logged, weights[line["step"]])
    for kind, split in (("curves", "validation"), ("timeline", None)):
        for k, point in enumerate(inspected.json[kind]):
            if point["step"] in weights and point.get("split") == split:
                found = evaluation(results(weights[point["step"]], validation), False)
                keys = ("loss", "sequences", "labels") + (("accuracy",) if split else ())
                inspected.same(f"{kind}/{k}", {key: found[key] for key in keys})
    for k, point in enumerate(inspected.json["timeline"]):
        line = next(one for one in lines if one["split"] == "heads" and one["step"] == point["step"])
        for h, head in enumerate(point["heads"]):
            measured = {name: value for name, value in line["heads"][h]["scores"].items() if value is not None}
            inspected.same(f"timeline/{k}/heads/{h}", {"scores": measured, "eligible": line["eligible"] | line["heads"][h]["eligible"]})
    inspected.same("chance", most_frequent(validation)[usual] / sum(map(len, validation[1])))


def check_head_log(logged, of):
    logged.same("", {key: evaluation(results(of, validation))[key] for key in ("loss", "sequences", "labels")})
    for h, (layer, head) in enumerate(ALL):
        found = scores([p.attention[layer][head] for p in passes(of, validation[0])])
        for name, (value, _, eligible) in found.items():
            logged.same(f"heads/{h}/scores/{name}", value if eligible >= 100 else None, 2e-6)
            own = name in ("offset", "absolute_position")
            logged.same(f"heads/{h}/eligible/{name}" if own else f"eligible/{name}", eligible)


def check_scores(inspected):
    here, initial = passes(final, test[0]), passes(weights[0], test[0])
    for h, (layer, head) in enumerate(ALL):
        at = {name: inspected.json["heads"][h]["scores"][name]["at"] for name in ("offset", "absolute_position")}
        at_init = scores([p.attention[layer][head] for p in initial], at)
        for name, (value, chance, eligible) in scores([p.attention[layer][head] for p in here], at).items():
            inspected.same(f"heads/{h}/scores/{name}", {"value": value, "chance": chance, "eligible": eligible,
                                                       "at_init": at_init[name][0]})


def check_effects(inspected, ablated):
    base, lines = results(final, test), test[0]
    untouched = passes(final, lines)
    longest = max(map(len, lines))
    partner = [[m for m, other in enumerate(lines) if len(other) == len(line) and m != n] for n, line in enumerate(lines)]
    paired = [n for n, others in enumerate(partner) if others]
    assert max(map(len, partner)) == 1 and 1 < len(paired) < len(lines)

    def mean_output(layer, head):
        of = numpy.full((len(lines), longest, 4), numpy.nan)
        for n, p in enumerate(untouched):
            of[n, :len(lines[n])] = p.outputs[layer][head]
        return numpy.nanmean(of, 0)

    def check(of, path, heads):
        means = {head: mean_output(*head) for head in heads}
        kinds = {"zero": without(heads), "mean": lambda n: {head: means[head][:len(lines[n])] for head in heads},
                 "resample": lambda n: {(l, h): untouched[(partner[n] or [n])[0]].outputs[l][h] for l, h in heads}}
        for kind, replaced in kinds.items():
            after = results(final, test, replaced)
            some = paired if kind == "resample" else slice(None)
            of.same(path + kind, effect(base.only(some), after.only(some), longest, entropy(test)), 1e-5)

    for h, head in enumerate(ALL):
        check(inspected, f"heads/{h}/ablation/", [head])
    check(ablated, "", [(0, 0), (1, 1)])
    for of in (inspected, ablated):
        of.same("baseline/loss", evaluation(base)["loss"])
        of.same("", {"unpaired": len(lines) - len(paired)})
        of.same("baseline", {key: evaluation(base)[key] for key in ("accuracy", "sequences", "labels")})
    inspected.same("baseline/sequence_accuracy", evaluation(base)["sequence_accuracy"])
    for path in ("cumulative_ablation", "joint_ablation/greedy_ablation"):
        steps = inspected.json["cumulative_ablation"] if path[0] == "c" else inspected.json["joint_ablation"]["greedy_ablation"]
        for k in range(len(steps)):
            r = evaluation(results(final, test, without([(s["layer"], s["head"]) for s in steps[1:k + 1]])))
            inspected.same(f"{path}/{k}", {"loss": r["loss"], "accuracy": r["accuracy"]})
    for depth in range(3):
        r = evaluation(Results([p.lens[depth] for p in untouched], test[1]))
        inspected.same(f"logit_lens/layers/{depth}", {"loss": r["loss"], "accuracy": r["accuracy"]})


def entropy(of):
    """The entropy of the labels of sequences, which the loss of an answer is capped at."""
    counts = most_frequent(of)
    return sum(n / sum(counts.values()) * math.log(sum(counts.values()) / n) for n in counts.values())


def check_scale(inspected):
    base, counts = results(final, test), most_frequent(test)
    usual = min(counts, key=lambda t: (-counts[t], t))
    constant = base.only(slice(None))
    constant.losses = [numpy.array([-math.log(counts[t] / base.labels.sum()) for t in target]) for target in test[1]]
    constant.loss = numpy.array([losses.sum() for losses in constant.losses])
    constant.right = numpy.array([float(target.count(usual)) for target in test[1]])
    chance = evaluation(constant)
    inspected.same("scale", {"chance": {"loss": chance["loss"], "accuracy": chance["accuracy"]},
                             "above_chance": effect(constant, base, max(map(len, test[0])), entropy(test)),
                             "smallest_effect": {"loss": 0.01 * chance["loss"], "accuracy": 0.01 * (1 - chance["accuracy"])}}, 1e-5)
    untrained = [evaluation(results(frozen(42 + k), test)) for k in range(1, inspected.json["scale"]["untrained"]["models"] + 1)]
    for key in ("loss", "accuracy"):
        values = [r[key] for r in untrained]
        inspected.same(f"scale/untrained/{key}", {"mean": numpy.mean(values), "sd": numpy.std(values, ddof=1)})


def check_patching():
    """Shares of the logit difference; each test sequence with a partner is patched from it, and has it once as a donor."""
    patched, lines = report("patch", "patch", "run"), test[0]
    pairs = [(n, m) for n in range(len(lines)) for m in range(len(lines)) if n != m and len(lines[n]) == len(lines[m])]

    def difference(n, m, p):
        return sum(p.log_probabilities[t, test[1][m][t]] - p.log_probabilities[t, test[1][n][t]] for t in range(len(lines[n])))

    own = passes(final, lines)
    totals = numpy.array([difference(n, m, own[m]) - difference(n, m, own[n]) for n, m in pairs])

    def share(layer, head, noising, position):
        changes, of = [], []
        for (n, m), total in zip(pairs, totals):
            to, donor = (n, m) if noising else (m, n)
            output = own[to].outputs[layer][head].copy()
            where = slice(None) if position is None else slice(position, position + 1)
            if position is not None and position >= len(output):
                continue
            output[where] = own[donor].outputs[layer][head][where]
            moved = difference(n, m, Pass(final, lines[to], HEADS, {(layer, head): output})) - difference(n, m, own[to])
            changes.append(moved if noising else -moved)
            of.append(total)
        if sum(of) <= 0:
            return {"effect": None, "pairs": len(of)}
        effect_of, interval = change(numpy.array(changes) * len(of) / sum(of), numpy.array(of) * len(of) / sum(of))
        return {"effect": effect_of, "interval": interval, "pairs": len(of)}

    for h, (layer, head) in enumerate(ALL):
        for kind in ("noising", "denoising"):
            patched.same(f"heads/{h}/{kind}", share(layer, head, kind == "noising", None), 1e-5)
            for position in (0, 4, 8):
                patched.same(f"heads/{h}/{kind}/positions/{position}", share(layer, head, kind == "noising", position), 1e-5)


def check_compare():
    """Overlaps of heads, the best assignment, and chance from 19 models that were never trained."""
    compared = report("compare", "compare", "run", "other", "--sequences", 100)
    lines = test[0]
    one, two = passes(final, lines), passes(load(work / "other/checkpoints/final.safetensors"), lines)
    same_length = [max((m for m in range(n) if len(lines[m]) == len(lines[n])), default=None) for n in range(len(lines))]
    elsewhere = [n for n, m in enumerate(same_length) if m is not None]

    def overlaps(others, pairs):
        found = numpy.zeros((len(ALL), len(ALL)))
        for (i, (l, h)), (j, (m, g)) in itertools.product(enumerate(ALL), enumerate(ALL)):
            rows = [numpy.minimum(one[n].attention[l][h], others[k].attention[m][g]).sum(1) for n, k in pairs]
            found[i, j] = numpy.concatenate([r for r in rows if len(r) > 1]).mean()
        return found

    everywhere = [(n, n) for n in range(len(lines))]
    shared, apart = overlaps(two, everywhere), overlaps(two, [(n, same_length[n]) for n in elsewhere])
    best = numpy.array([shared.max(1)] + [overlaps(passes(frozen(FIRST_UNTRAINED + k), lines), everywhere).max(1) for k in range(19)])
    mean, sd = best.mean(0), best.std(0, ddof=1)
    chance = mean + sd * ((best[1:] - mean) / sd).max()
    assigned = max(itertools.permutations(range(len(ALL))), key=lambda p: shared[range(len(ALL)), p].sum())
    queries = lambda chosen: sum(len(lines[n]) for n in chosen if len(lines[n]) > 1)
    compared.same("heads/0", {"sequences": len(lines), "elsewhere_sequences": len(elsewhere), "chance_models": 19})
    for i, j in enumerate(assigned):
        matched = shared[i, j] > chance[i]
        compared.same(f"heads/0/matches/{i}", {
            "overlap": shared[i, j], "chance": chance[i], "queries": queries(range(len(lines))),
            "match": {"layer": ALL[j][0], "head": ALL[j][1]} if matched else None,
            "elsewhere": apart[i, j] if matched else None, "elsewhere_queries": queries(elsewhere) if matched else 0})


def check_sweep():
    """Mean, sample standard deviation and so on over the seeds; of one seed there is no deviation."""
    (work / "sweep.yaml").write_text(SWEEP)
    swept = report("sweep", "sweep", "sweep.yaml", "--out", "sweep", "--jobs", 1)
    compared = report("compare", "compare", "sweep")
    statistics = {"mean": numpy.mean, "sd": lambda x: numpy.std(x, ddof=1), "min": min, "max": max, "count": len}
    for s, setting in enumerate(swept.json["settings"]):
        runs = [one["result"] for one in setting["runs"]]
        for r, one in enumerate(setting["runs"]):
            for path, value in leaves(json.loads((work / "sweep/runs" / pathlib.Path(one["directory"]).name / "summary.json").read_text())):
                swept.same(f"settings/{s}/runs/{r}/result/{'/'.join(path)}", value, 0)
        for metric in ("steps", "seconds", *itertools.product(("validation", "test"), ("loss", "accuracy", "sequence_accuracy"))):
            keys = (metric,) if isinstance(metric, str) else metric
            values = [one[keys[0]] if len(keys) == 1 else one[keys[0]][keys[1]] for one in runs]
            for name, of in statistics.items():
                swept.same("/".join((f"settings/{s}/{name}", *keys)), of(values))
            for row, result in enumerate(compared.json["results"]):
                if result["metric"] == ".".join(keys):
                    compared.same(f"results/{row}/runs/{s}", {"median": numpy.median(values), "min": min(values),
                                                             "max": max(values), "count": len(values)})
        logs = [(work / "sweep/runs" / pathlib.Path(one["directory"]).name / "metrics.jsonl").read_text() for one in setting["runs"]]
        logs = [json.loads(line) for log in logs for line in log.splitlines()]
        for c, curve in enumerate(compared.json["curves"]):
            for k, point in enumerate(curve["runs"][s]):
                values = [line[curve["metric"]] for line in logs if (line["split"], line["step"]) == (curve["split"], point["step"])]
                compared.same(f"curves/{c}/runs/{s}/{k}", {"median": numpy.median(values), "min": min(values), "max": max(values),
                                                          "count": len(values)})
    (work / "sweep.yaml").write_text(SWEEP.replace("[1, 2, 3]", "[1]"))
    report("sweep", "sweep", "sweep.yaml", "--out", "one_seed", "--jobs", 1)


def check_others():
    """The other commands print no numbers that are not in the list."""
    (work / "pair.yaml").write_text(PAIR)
    report("run", "train", "pair.yaml", "--out", "pair")
    report("run", "train", "pair.yaml", "--out", "pair2", "train.seed=5")
    for line in (work / "pair/metrics.jsonl").read_text().splitlines():
        logged = json.loads(line)
        Report("pair_heads" if logged["split"] == "heads" else "metrics", logged)
    report("eval", "eval", "pair")
    report("inspect", "inspect", "pair")
    report("compare", "compare", "pair", "pair2")
    report("compare", "compare", "run", "other", "other")
    report("input", "trace", "run", "a b c")
    report("edges", "patch", "run", "--edges")
    report("generate", "generate", "pair", "--input", "a b c", "--beams", 3)
    report("gradcheck", "gradcheck", "--op", "relu")
    (work / "experiments").mkdir()
    (work / "experiments/one.yaml").write_text(EXPERIMENT)
    reproduced = report("reproduce", "reproduce", "one", "--experiments", "experiments")
    for v, value in enumerate(reproduced.json["experiments"][0]["values"]):
        seeds = [x for x in value["seeds"] if x is not None]
        found = {"min": min(seeds), "median": numpy.median(seeds), "max": max(seeds)} if seeds else dict.fromkeys(("min", "median", "max"))
        reproduced.same(f"experiments/0/values/{v}", found | {"count": len(seeds)}, 1e-12)
    for arguments in (["tasks", "reverse"], ["tasks", "--config", "config.yaml"], ["config", "cost", "config.yaml"],
                      ["config", "show", "config.yaml"]):
        report("settings", *arguments)


with tempfile.TemporaryDirectory() as directory:
    work = pathlib.Path(directory)
    drawn = random.Random(1)
    train = write("train.tsv", [drawn.randint(2, 9) for _ in range(40)])
    validation = write("validation.tsv", [drawn.randint(2, 7) for _ in range(40)] + [12])
    test = write("test.tsv", [2, 3, 1, 3, 5, 2, 7, 5, 9, 9])
    write("pairs.tsv", [drawn.randint(2, 7) for _ in range(60)], lambda line: line[1:])
    (work / "config.yaml").write_text(CONFIG)
    report("run", "train", "config.yaml", "--out", "run")
    run("train", "config.yaml", "--out", "other", "train.steps=20", "train.optimizer.lr=0.005", "--quiet")
    weights = {0: frozen(42)} | {step: load(work / f"run/checkpoints/{name}.safetensors")
                                 for step, name in ((20, "step-20"), (40, "final"))}
    final = weights[40]
    inspected = report("inspect", "inspect", "run", "--examples", 100)
    ids = [["abcdefg".index(token) for token in example["tokens"]] for example in inspected.json["examples"]]
    assert sorted(ids) == sorted(test[0])
    test = ids, [line[::-1] for line in ids]  # in the order in which the program reads them
    check_evaluations()
    check_curves(inspected)
    check_scores(inspected)
    check_effects(inspected, report("ablate", "ablate", "run", "0.0,1.1"))
    check_scale(inspected)
    check_patching()
    check_compare()
    check_sweep()
    check_others()
    for section, path, proof in sorted(Report.used, key=str):
        if proof == "plain":
            assert (section, path) in Report.compared, f"{section}: {path} was never compared"
        elif proof:
            assert list((source / "tests").rglob(proof)), f"{section}: {path} is said to be tested by {proof}, which is missing"
print("statistics_test: ok")
