"""Times PyTorch on the model that the embedded engine is compared with, and prints one JSON object.

The model is the Llama shape of policy/transformer: RMSNorm, half-split RoPE, causal attention, SwiGLU, tied
embeddings, float32. Figures are tokens per second of process CPU time, the best of several rounds:
  train     forward, backward, gradient clipping and AdamW over a batch
  forward   the forward pass alone
  sample64  cached decoding of 64 sequences, one token each a step, sampled at temperature 1
  sample1   the same for one sequence
"""

import argparse
import json
import time

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.Parameter(torch.ones(width))
        self.norm2 = nn.Parameter(torch.ones(width))
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate_up = nn.Linear(width, 2 * inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x, cos, sin, mask, cache, position):
        batch, length, width = x.shape
        size = width // self.heads
        q, k, v = self.qkv(rms_norm(x, self.norm1)).view(batch, length, 3, self.heads, size).permute(2, 0, 3, 1, 4)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        if cache is not None:
            cache[0][:, :, position : position + length] = k
            cache[1][:, :, position : position + length] = v
            k, v = cache[0][:, :, : position + length], cache[1][:, :, : position + length]
        scores = q @ k.transpose(-1, -2) * size**-0.5
        if mask is not None:
            scores = scores + mask
        x = x + self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, width))
        gate, up = self.gate_up(rms_norm(x, self.norm2)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


def rms_norm(x, gain):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * gain


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class Model(nn.Module):
    def __init__(self, vocab, width, layers, heads, inner, context):
        super().__init__()
        self.embedding = nn.Parameter(torch.randn(vocab, width) * 0.02)
        self.blocks = nn.ModuleList(Block(width, heads, inner) for _ in range(layers))
        self.norm = nn.Parameter(torch.ones(width))
        size = width // heads
        angles = torch.arange(context)[:, None] * 10000 ** (-torch.arange(size // 2) * 2 / size)[None]
        self.cos, self.sin = angles.cos(), angles.sin()
        self.mask = torch.full((context, context), float("-inf")).triu(1)

    def forward(self, tokens, caches=None, position=0):
        length = tokens.shape[1]
        x = self.embedding[tokens]
        cos, sin = self.cos[position : position + length], self.sin[position : position + length]
        mask = self.mask[:length, :length] if caches is None else None
        for i, block in enumerate(self.blocks):
            x = block(x, cos, sin, mask, caches[i] if caches else None, position)
        return rms_norm(x, self.norm) @ self.embedding.T


def best(rounds, work):
    seconds = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return min(seconds)


def main():
    parser = argparse.ArgumentParser()
    for name in ("vocab", "width", "layers", "heads", "inner", "batch", "length", "rounds"):
        parser.add_argument("--" + name, type=int, required=True)
    a = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    context = 2 * a.length
    model = Model(a.vocab, a.width, a.layers, a.heads, a.inner, context)
    tokens = torch.randint(0, a.vocab, (a.batch, a.length))
    optimiser = torch.optim.AdamW(model.parameters(), 1e-3, betas=(0.9, 0.95), weight_decay=0.1)

    def train():
        logits = model(tokens)
        loss = F.cross_entropy(logits[:, :-1].reshape(-1, a.vocab), tokens[:, 1:].reshape(-1))
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()

    def sample(slots):
        with torch.inference_mode():
            shape = (slots, a.heads, context, a.width // a.heads)
            caches = [(torch.zeros(shape), torch.zeros(shape)) for _ in range(a.layers)]
            token = torch.zeros(slots, 1, dtype=torch.long)
            for position in range(a.length):
                token = torch.multinomial(model(token, caches, position)[:, -1].softmax(-1), 1)

    def forward():
        with torch.inference_mode():
            model(tokens)

    work = a.batch * a.length
    print(
        json.dumps(
            {
                "torch": torch.__version__,
                "parameters": sum(p.numel() for p in model.parameters()),
                "train": work / best(a.rounds, train),
                "forward": work / best(a.rounds, forward),
                "sample64": 64 * a.length / best(a.rounds, lambda: sample(64)),
                "sample1": a.length / best(a.rounds, lambda: sample(1)),
            }
        )
    )


if __name__ == "__main__":
    main()
