"""Forms of a run's files that are equal if two runs are: without times, and without what depends on them."""
import hashlib
import json

IN_STATE = ("step", "train", "validation", "best_step", "best_loss", "evaluations_since_best")
IN_METADATA = ("format", "step", "weights_hash", "data")  # the config may have other steps
# Times, and sums over lines that contain times.
VOLATILE = {"seconds", "threads", "checksum", "check", "metrics", "directory"}


def strip(value):
    if isinstance(value, dict):
        return {key: strip(item) for key, item in value.items() if key not in VOLATILE}
    if isinstance(value, list):
        return [strip(item) for item in value]
    return value


def read_safetensors(data):
    """Returns the metadata and the bytes of the tensors; raises ValueError if the file is torn."""
    size = int.from_bytes(data[:8], "little")
    if len(data) < 8 or size > len(data) - 8:
        raise ValueError("torn header")
    header = json.loads(data[8:8 + size].decode("utf-8"))
    metadata = header.pop("__metadata__", {})
    end = max((tensor["data_offsets"][1] for tensor in header.values()), default=0)
    if len(data) != 8 + size + end:
        raise ValueError("torn data")
    return metadata, header, data[8 + size:]


def safetensors(data):
    metadata, header, tensors = read_safetensors(data)
    state = json.loads(metadata.get("state", "{}"))
    return ({key: metadata.get(key) for key in IN_METADATA}, {key: state.get(key) for key in IN_STATE},
            header, hashlib.sha256(tensors).hexdigest())


def normal(path, data):
    """Returns the normal form of the file with that name and content; raises ValueError if it is torn."""
    try:
        return unchecked(path, data)
    except (AttributeError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"not what the program writes: {error!r}") from error


def unchecked(path, data):
    if not isinstance(data, bytes):
        return data
    if path.endswith(".safetensors"):
        return safetensors(data)
    if path.endswith(".jsonl"):
        if data and not data.endswith(b"\n"):
            raise ValueError("torn line")
        return [strip(json.loads(line)) for line in data.decode("utf-8-sig").split("\n") if line.strip()]
    if path.endswith(".json"):
        return strip(json.loads(data.decode("utf-8-sig")))
    return data


def as_number(value):
    """Returns the number that the text of a config means, or the text."""
    try:
        return float(value)
    except ValueError:
        return value


def config_values(text):
    """Returns {dotted key: value} of what `config show` prints and of a run's config.yaml."""
    values, path = {}, []
    for line in text.splitlines():
        bare = line.split(" #")[0].rstrip()
        if not bare.strip() or bare.lstrip().startswith("#") or ":" not in bare:
            continue
        depth = (len(bare) - len(bare.lstrip())) // 2
        key, value = bare.strip().split(":", 1)
        path[depth:] = [key]
        if value.strip():
            values[".".join(path)] = value.strip()
    return values
