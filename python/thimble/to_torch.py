"""Turns a checkpoint of thimble into a PyTorch module, of the class in torch_models.py that its config says: load().

As a program, python3 -m thimble.to_torch, it writes the module's state dict, for torch.load. Needs PyTorch and PyYAML
(Debian and Ubuntu: apt-get install python3-torch python3-yaml, then run with /usr/bin/python3).
"""

import argparse

import torch
import yaml

from . import safetensors_file, torch_models


def load(path):
    """The model of a checkpoint, in evaluation mode. Raises ValueError, in a sentence, when that cannot be."""
    arrays, metadata = safetensors_file.read(path)
    if "config" not in metadata:
        raise ValueError(f"{path}: has no config among its metadata; is it a checkpoint of thimble?")
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items() if not name.startswith("optimizer.")}
    try:
        model = torch_models.make(yaml.safe_load(metadata["config"])["model"],
                                  {name: tuple(tensor.shape) for name, tensor in tensors.items()})
        model.to(tensors["token_embedding.weight"].dtype).load_state_dict(tensors)
    except (KeyError, RuntimeError) as error:
        raise ValueError(f"{path}: its tensors are not those of its config: " + " ".join(str(error).split())) from error
    return model.eval()


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkpoint", metavar="CHECKPOINT.safetensors")
    parser.add_argument("out", metavar="OUT.pt")
    args = parser.parse_args(arguments)
    try:
        torch.save(load(args.checkpoint).state_dict(), args.out)
    except (OSError, ValueError) as error:
        parser.exit(2, f"to_torch: {error}\n")


if __name__ == "__main__":
    main()
