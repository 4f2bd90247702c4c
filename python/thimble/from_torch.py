"""Writes a PyTorch state dict as a file that `thimble inspect --config C.yaml --weights FILE` reads.

As a module:
    from thimble.from_torch import save
    save(model.state_dict(), "weights.safetensors", {"transformer": "encoder", "fc": "output"})

docs/pytorch.md has the names that thimble requires. Other names are given with what they become, and what thimble has no use for with "" (a table of sinusoids, say).
Needs PyTorch (Debian and Ubuntu: apt-get install python3-torch, then run with /usr/bin/python3).
"""

import argparse
import collections.abc
import pickle

import torch

from . import safetensors_file


def save(state, path, names=None):
    """Writes the tensors of a state dict, in float32 or float64; the longest prefix of a name that is among `names` is
    replaced, and what is to become "" is left out."""
    if not isinstance(state, collections.abc.Mapping):
        raise ValueError(f"holds a {type(state).__name__}, not a state dict; save model.state_dict()")
    arrays = {}
    for name, tensor in state.items():
        prefix = max((prefix for prefix in names or {} if f"{name}.".startswith(f"{prefix}.")), key=len, default=None)
        if prefix is not None and not names[prefix]:
            continue
        new = name if prefix is None else names[prefix] + name[len(prefix):]
        if new in arrays:
            raise ValueError(f"{name}: two tensors would be called {new}")
        if not isinstance(tensor, torch.Tensor):
            raise ValueError(f"{name}: is a {type(tensor).__name__}, not a tensor; save model.state_dict() alone")
        if not tensor.is_floating_point():
            raise ValueError(f"{name}: holds {tensor.dtype}, not weights; leave it out with the name \"\"")
        tensor = tensor.detach().cpu()
        arrays[new] = (tensor if tensor.dtype == torch.float64 else tensor.float()).contiguous().numpy()
    safetensors_file.write(path, arrays)


def rename_rule(text):
    old, separator, new = text.partition("=")
    if not old or not separator:
        raise argparse.ArgumentTypeError(f"{text}: give OLD=NEW, or OLD= to leave tensors out")
    return old, new


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("state", metavar="STATE.pt", help="a state dict, or a checkpoint with one as state_dict")
    parser.add_argument("out", metavar="OUT.safetensors")
    parser.add_argument("--rename", action="append", default=[], type=rename_rule, metavar="OLD=NEW",
                        help="a name, or the start of names up to a dot; OLD= leaves them out")
    args = parser.parse_args(arguments)
    try:
        state = torch.load(args.state, map_location="cpu")
        if isinstance(state, collections.abc.Mapping):
            state = state.get("state_dict", state)
        save(state, args.out, dict(args.rename))
    except (OSError, ValueError) as error:
        parser.exit(2, f"from_torch: {args.state}: {error}\n")
    except (RuntimeError, EOFError, AttributeError, ImportError, pickle.UnpicklingError) as error:
        parser.exit(2, f"from_torch: {args.state}: torch.load: {' '.join(str(error).split())}\n")


if __name__ == "__main__":
    main()
