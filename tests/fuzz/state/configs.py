"""Random small configs, with data files of their own for the task `file`."""
import json

POSITION_TASKS = ("reverse", "copy", "sort", "shift", "histogram")
SEQUENCE_TASKS = ("majority", "parity", "modular_addition")


def maybe(rng, section, key, values, probability=0.3):
    if rng.random() < probability:
        section[key] = rng.choice(values)


def data_lines(rng, per, count):
    """Returns pairs of an input and a target, with no input twice."""
    tokens = rng.choice((list("abcd"), ["le", "chat", "é", "ß"], ["1", "2", "3", "4"]))
    pairs = {}
    while len(pairs) < count:
        source = [rng.choice(tokens) for _ in range(rng.randint(2, 4))]
        target = {"position": source[::-1], "sequence": source[:1], "next": source[-1:] + source[:1]}[per]
        pairs[" ".join(source)] = " ".join(target)
    return list(pairs.items())


def write_pairs(pairs, kind):
    if kind == "jsonl":
        return "".join(json.dumps({"input": source.split(), "target": target}, ensure_ascii=False) + "\n"
                       for source, target in pairs)
    return "".join(f"{source}\t{target}\n" for source, target in pairs)


def random_config(rng):
    """Returns a config, as nested dictionaries, and its data files, {name: text}."""
    kind = rng.choice(("encoder", "encoder", "encoder", "encoder_decoder", "recurrent"))
    per = rng.choice(("position", "sequence")) if kind == "encoder" else "next"
    files, task = {}, {}
    if rng.random() < 0.3:
        ending = rng.choice(("tsv", "jsonl", "txt"))
        task = {"name": "file", "file": f"data.{ending}"}
        files[f"data.{ending}"] = write_pairs(data_lines(rng, per, rng.randint(50, 70)), ending)
        if rng.random() < 0.3:
            ending = rng.choice(("tsv", "jsonl"))
            task["validation_file"] = f"validation.{ending}"
            files[task["validation_file"]] = write_pairs(data_lines(rng, per, 8), ending)
    elif per == "sequence":
        task = {"name": rng.choice(SEQUENCE_TASKS)}
        if task["name"] != "modular_addition":
            task["length"] = rng.randint(3, 6)
        if task["name"] != "parity":
            task["symbols"] = rng.randint(5, 9)
    else:
        task = {"name": rng.choice(POSITION_TASKS if per == "position" else ("reverse", "copy", "sort")),
                "symbols": rng.randint(4, 9), "length": rng.randint(3, 6)}
        maybe(rng, task, "min_length", (2, 3))
    config = {"task": task, "data": {"train": rng.choice((12, 20, 24)), "validation": rng.choice((4, 6)),
                                     "test": rng.choice((4, 6))}}
    if task["name"] == "file":
        config["data"] = {}
    elif rng.random() < 0.2:
        config["data"]["train"] = 0
    config["model"] = random_model(rng, kind, per)
    config["train"] = random_training(rng)
    if config["model"].get("attention", {}).get("score") == "none":
        config["train"].pop("log_heads", None)
    return config, files


def random_model(rng, kind, per):
    heads = rng.choice((1, 1, 2))
    model = {"kind": kind, "d_model": 4 * heads, "layers": 1, "output": {"per": per}}
    if kind == "recurrent":
        maybe(rng, model, "attention", ({"score": "additive"}, {"score": "dot"}, {"score": "none"}), 0.6)
        return model
    model |= {"heads": heads, "d_ff": rng.choice((0, 4, 8)), "layers": rng.choice((1, 1, 2))}
    maybe(rng, model, "norm", ("pre",), 0.5)
    maybe(rng, model, "norm_type", ("rms",))
    maybe(rng, model, "positions", ("learned", "rotary", "alibi", "none"), 0.5)
    if model.get("positions") == "rotary":
        maybe(rng, model, "rotary", ("pairs", "halves"), 0.5)
    maybe(rng, model, "dropout", (0.1,))
    maybe(rng, model, "attention", ({"score": "dot"}, {"kv_heads": 1}, {"dropout": 0.1}))
    return model


def random_training(rng):
    train = {"steps": rng.randint(4, 9), "batch": rng.choice((2, 4)), "seed": rng.randint(1, 999),
             "threads": rng.choice((1, 1, 1, 2)), "shards": rng.choice((1, 2)),
             "evaluate_every": rng.choice((0, 1, 2, 3)), "checkpoint_every": rng.choice((0, 1, 1, 2)),
             "optimizer": {"name": rng.choice(("adam", "adamw", "sgd")), "lr": rng.choice((0.001, 0.01, 0.05))}}
    maybe(rng, train, "checkpoint_series", (True,))
    maybe(rng, train, "log_heads", (True,), 0.5)
    if train["evaluate_every"] > 0:
        maybe(rng, train, "patience", (1, 2))
        maybe(rng, train, "target", ({"accuracy": 0.5}, {"loss": 1.5}), 0.2)
    maybe(rng, train, "clip_norm", (0.5, 1))
    maybe(rng, train, "precision", ("float64",), 0.2)
    maybe(rng, train, "schedule", ({"name": "cosine"}, {"name": "linear", "warmup": 2}))
    return train


def to_yaml(config):
    return "".join(f"{key}: {json.dumps(section)}\n" for key, section in config.items())
