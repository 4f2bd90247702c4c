"""Weights of another program's conventions load as docs/pytorch.md says: logits agree with PyTorch's within 1e-5.

Usage: torch_conventions_test.py THIMBLE_BINARY SOURCE_DIR
"""

import contextlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import torch

thimble, source = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
sys.path.insert(0, str(source / "python"))  # for the program of the page

torch.set_num_threads(1)  # spinning threads would starve thimble
TOLERANCE = 1e-5


def run(*arguments):
    done = subprocess.run([thimble, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, f"thimble {' '.join(map(str, arguments))}: {done.stderr}"
    return done.stdout


class Llama:
    """The forward pass of Hugging Face's LlamaForCausalLM, from its state dict: halves, base 500, epsilon 0.01."""

    heads, kv_heads, width, base, epsilon = 4, 2, 6, 500.0, 0.01

    def __init__(self, vocabulary, layers):
        generator = torch.Generator().manual_seed(5)
        shapes = {"model.embed_tokens": (vocabulary, 12), "model.norm": (12,), "lm_head": (vocabulary, 12)}
        for layer in range(layers):
            shapes.update({f"model.layers.{layer}.{name}": shape for name, shape in {
                "self_attn.q_proj": (24, 12), "self_attn.k_proj": (12, 12), "self_attn.v_proj": (12, 12),
                "self_attn.o_proj": (12, 24), "mlp.gate_proj": (20, 12), "mlp.up_proj": (20, 12),
                "mlp.down_proj": (12, 20), "input_layernorm": (12,), "post_attention_layernorm": (12,)}.items()})
        self.layers = layers
        self.state = {name + ".weight": (1.0 if len(shape) == 1 else 0) + 0.5 * torch.randn(shape, generator=generator)
                      for name, shape in shapes.items()}

    def norm(self, name, x):
        return self.state[name + ".weight"] * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.epsilon)

    def heads_of(self, name, x):
        return (x @ self.state[name + ".weight"].T).view(len(x), -1, self.width).transpose(0, 1)

    def rotate(self, x):
        inverse = 1.0 / self.base ** (torch.arange(0, self.width, 2).float() / self.width)
        angle = torch.outer(torch.arange(x.shape[1]).float(), inverse)
        angle = torch.cat([angle, angle], dim=-1)
        half = self.width // 2
        return x * angle.cos() + torch.cat([-x[..., half:], x[..., :half]], dim=-1) * angle.sin()

    def __call__(self, tokens):
        x = self.state["model.embed_tokens.weight"][tokens]
        hidden = torch.ones(len(x), len(x)).triu(1).bool()
        for layer in range(self.layers):
            name = f"model.layers.{layer}."
            y = self.norm(name + "input_layernorm", x)
            q, k, v = (self.heads_of(f"{name}self_attn.{part}_proj", y) for part in "qkv")
            q, k = self.rotate(q), self.rotate(k)
            k, v = (z.repeat_interleave(self.heads // self.kv_heads, dim=0) for z in (k, v))
            scores = (q @ k.transpose(-1, -2) / self.width ** 0.5).masked_fill(hidden, -torch.inf)
            y = (scores.softmax(-1) @ v).transpose(0, 1).flatten(1)
            x = x + y @ self.state[name + "self_attn.o_proj.weight"].T
            y = self.norm(name + "post_attention_layernorm", x)
            gate, up, down = (self.state[f"{name}mlp.{part}_proj.weight"] for part in ("gate", "up", "down"))
            x = x + (torch.nn.functional.silu(y @ gate.T) * (y @ up.T)) @ down.T
        return self.norm("model.norm", x) @ self.state["lm_head.weight"].T


def llama(work):
    """Weights of Hugging Face's names load as docs/pytorch.md says; each convention matters."""
    (work / "llama.yaml").write_text("""task: {name: reverse, symbols: 7, length: 6}
model: {d_model: 12, heads: 4, layers: 2, d_ff: 20, norm: pre, norm_type: rms, norm_epsilon: 0.01, bias: false,
  activation: silu,
  gated: true, positions: rotary, rotary: halves, rotary_base: 500,
  attention: {mask: causal, kv_heads: 2, d_key: 6, d_value: 6}, output: {per: next}}
""")
    text = (source / "docs" / "pytorch.md").read_text()
    block = next(block for block in re.findall(r"^```python\n(.*?)^```", text, re.M | re.S) if "def from_llama" in block)
    given = ["--config", work / "llama.yaml", "--weights", work / "llama.safetensors"]
    names = json.loads(run("tasks", "--config", work / "llama.yaml", "--json", "-"))["tokens"]
    sequence = [names[i] for i in (1, 4, 0, 3, 3, 2)]
    model = Llama(len(names), 2)
    with contextlib.chdir(work):
        exec(block, {"state": model.state})

    def difference(*changes):
        report = json.loads(run("trace", " ".join(sequence), *changes, *given, "--json", "-"))
        expected = model(torch.tensor([report["vocabulary"].index(token) for token in report["tokens"]]))
        assert report["tokens"][:6] == sequence and expected.std() > 0.1
        return (torch.tensor(report["logits"]) - expected).abs().max().item()

    assert difference() < TOLERANCE, f"logits differ by {difference()}"
    for change in ("model.rotary=pairs", "model.rotary_base=10000", "model.norm_epsilon=1e-5"):
        assert difference(change) > 100 * TOLERANCE, f"{change} changes nothing"


with tempfile.TemporaryDirectory() as directory:
    llama(pathlib.Path(directory))
