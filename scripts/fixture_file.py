"""A file of reference values, for make_fixtures.py."""

import json
import struct
import zlib

import torch

IGNORED = -1


class Fixture:
    """One file to be: named tensors, metadata, and the random numbers they are made of."""

    def __init__(self, name, **metadata):
        self.name = name
        self.metadata = {key: str(value) for key, value in metadata.items()}
        self.tensors = {}
        self.generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))

    def normal(self, *shape):
        return torch.randn(*shape, generator=self.generator)

    def integers(self, high, *shape):
        return torch.randint(high, shape, generator=self.generator)

    def labels(self, vocabulary, *shape):
        """Random labels, about a quarter of them ignored."""
        ignored = torch.rand(*shape, generator=self.generator) < 0.25
        return self.integers(vocabulary, *shape).masked_fill(ignored, IGNORED)

    def randomise(self, module):
        """Every parameter random, biases and norms too: a default of 0 or 1 would hide mistakes."""
        for name, parameter in module.named_parameters():
            is_norm_weight = parameter.dim() == 1 and name.endswith("weight")
            parameter.data = 0.3 * self.normal(*parameter.shape) + (1.0 if is_norm_weight else 0.0)

    def add(self, tensors, prefix=""):
        for name, tensor in tensors.items():
            self.tensors[prefix + name] = tensor.detach().clone()

    def add_with_gradients(self, leaves, output_name, output, cotangent=None):
        """Stores the leaves, the output, its cotangent, and the gradient of sum(cotangent * output)."""
        if cotangent is None:
            cotangent = self.normal(*output.shape)
        gradients = torch.autograd.grad(output, list(leaves.values()), cotangent)
        for name, gradient in zip(leaves, gradients):
            assert gradient.abs().max() > 1e-4, f"{self.name}: d_{name} is vacuous"
        self.add(leaves)
        self.add({output_name: output, f"d_{output_name}": cotangent})
        self.add(dict(zip(leaves, gradients)), prefix="d_")

    def write(self, directory):
        header = {"__metadata__": self.metadata} if self.metadata else {}
        data = b""
        for name, tensor in self.tensors.items():
            real = tensor.is_floating_point()
            array = tensor.contiguous().numpy().astype("<f8" if real else "<i8")
            header[name] = {"dtype": "F64" if real else "I64", "shape": list(tensor.shape),
                            "data_offsets": [len(data), len(data) + array.nbytes]}
            data += array.tobytes()
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        (directory / f"{self.name}.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)


def leaf(tensor):
    return tensor.requires_grad_(True)


def hidden_pairs(mask, batch, time):
    """True where query t of sequence b must not see key s, as ((B, T, S), lengths or None)."""
    hidden = torch.zeros(batch, time, time, dtype=torch.bool)
    lengths = None
    if "causal" in mask:
        hidden |= torch.ones(time, time).triu(1).bool()
    if "padding" in mask:
        lengths = torch.tensor([5, 3, 1])
        hidden |= (torch.arange(time) >= lengths[:, None])[:, None, :]
    return hidden, lengths
