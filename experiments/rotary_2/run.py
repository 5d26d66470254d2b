"""Read the registered rows under each setting, or forecast them.

    python experiments/rotary_2/run.py measure --model FILE.gguf --out FILE [--device cuda]
    python experiments/rotary_2/run.py forecast --model FILE.gguf --out FILE

`measure` is a model of its own: a Llama in 60 lines with each setting written from its paper, so
that farfield is no witness for itself. It needs torch and NumPy. `forecast` asks farfield. A line
is a row under a setting; both commands go on where they were stopped.
"""

import argparse
import json
import math
import struct
import time
from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import rms_norm, scaled_dot_product_attention, silu

HERE = Path(__file__).parent
TRAINED, TO, TARGETS = 8192, 16384, 256
NEAR, SINKS = 2048, 4
SETTINGS = {
    "none": {},
    "text cut to 8192": {"cut": TRAINED},
    "YaRN 2": {"rope": "yarn", "factor": 2},
    "Self-Extend, groups of 3 from 2046": {"group": (3, 2046)},
    "base 2": {"rope": "base", "factor": 2},
    "dynamic 2": {"rope": "dynamic", "factor": 2},
    "Llama 3 2": {"rope": "llama3", "factor": 2},
    "linear 2": {"rope": "linear", "factor": 2},
    "YaRN 4": {"rope": "yarn", "factor": 4},
    "base 4": {"rope": "base", "factor": 4},
    "Self-Extend, groups of 4 from 2048": {"group": (4, 2048)},
    "window 4096": {"window": 4096},
    "window 4096, 4 first keys": {"window": 4096, "sinks": SINKS},
    "window 4096, 4 first keys in the cache": {"window": 4096, "sinks": SINKS, "cached": True},
    "log scale": {"scale": True},
}
"""By name: the seven that may be advised, and what those lose that may not."""
FIRST, ROWS, LATER = 7, (0, 6, 1, 7, 2, 8, 3, 4, 5), (9, 10, 11)
"""The order of reading: rows 0 to 5, the truth, and 6 to 8, what the plan reads, first under the
first settings; then the other settings, and rows that the plan does not read."""


# -- the model ------------------------------------------------------------------------------------


def gguf(path):
    """Header values and tensors of a GGUF file in Q4_1, Q8_0 and F32, the tensors in float32."""
    data, at = np.memmap(path, mode="r"), 0

    def take(form):
        nonlocal at
        values = struct.unpack_from("<" + form, data, at)
        at += struct.calcsize("<" + form)
        return values[0]

    def text():
        nonlocal at
        size = take("Q")
        at += size
        return bytes(data[at - size : at]).decode()

    def value(kind):
        if kind == 8:
            return text()
        if kind == 9:
            inner, count = take("I"), take("Q")
            return [value(inner) for _ in range(count)]
        return take("BbHhIif?  QqdQ"[kind] if kind < 8 else {10: "Q", 11: "q", 12: "d"}[kind])

    assert bytes(data[:4]) == b"GGUF"
    at = 8
    count, pairs = take("Q"), take("Q")
    header = {text(): value(take("I")) for _ in range(pairs)}
    places = {}
    for _ in range(count):
        name = text()
        shape = [take("Q") for _ in range(take("I"))][::-1]
        places[name] = (shape, take("I"), take("Q"))
    begin = -(-at // 32) * 32
    tensors = {n: unpacked(data, begin + p, kind, shape) for n, (shape, kind, p) in places.items()}
    return header, tensors


def unpacked(data, begin, kind, shape):
    """A tensor of a GGUF file by the formula of its type: 0 F32, 3 Q4_1, 8 Q8_0."""
    size = math.prod(shape)
    if kind == 0:
        return np.frombuffer(data, np.float32, size, begin).reshape(shape).copy()
    block = {3: 20, 8: 34}[kind]
    raw = np.frombuffer(data, np.uint8, size // 32 * block, begin).reshape(-1, block)
    scale = raw[:, :2].copy().view(np.float16).astype(np.float32)
    if kind == 8:
        return (scale * raw[:, 2:].view(np.int8)).reshape(shape)
    least, nibbles = raw[:, 2:4].copy().view(np.float16).astype(np.float32), raw[:, 4:]
    return (scale * np.concatenate([nibbles & 15, nibbles >> 4], 1) + least).reshape(shape)


PARTS = [
    "attn_norm",
    "attn_q",
    "attn_k",
    "attn_v",
    "attn_output",
    "ffn_norm",
    "ffn_gate",
    "ffn_up",
    "ffn_down",
]


class Model:
    """A Llama: weights and products in `dtype`, residual and rotations in float32."""

    def __init__(self, path, device, dtype):
        header, tensors = gguf(path)
        llama = {k.removeprefix("llama."): v for k, v in header.items()}
        self.depth, self.base = llama["block_count"], llama["rope.freq_base"]
        self.heads, self.key_heads = (llama[f"attention.head_count{x}"] for x in ("", "_kv"))
        self.eps, self.device, self.dtype = llama["attention.layer_norm_rms_epsilon"], device, dtype
        for (
            name
        ) in tensors:  # llama.cpp turns neighbouring numbers, so the file holds them in turns
            if "attn_q." in name or "attn_k." in name:
                heads = self.heads if "attn_q." in name else self.key_heads
                x = tensors[name]
                pairs = x.reshape(heads, x.shape[0] // heads // 2, 2, x.shape[1])
                tensors[name] = pairs.swapaxes(1, 2).reshape(x.shape)
        self.weights = {
            name: torch.from_numpy(x).to(device, torch.float32 if "norm" in name else dtype)
            for name, x in tensors.items()
        }
        self.size = self.weights["blk.0.attn_q.weight"].shape[0] // self.heads

    @torch.no_grad()
    def scores(self, tokens, kept, setting):
        """Scores (kept, vocabulary) of the tokens after the places kept, float32."""
        tokens, kept = tokens.to(self.device), kept.to(self.device)
        x = self.weights["token_embd.weight"][tokens].float()
        frequencies, amplitude = turns(self.base, self.size, len(tokens), setting)
        self.turn = (frequencies.to(self.device), amplitude)
        for k in range(self.depth):
            w = {n: self.weights[f"blk.{k}.{n}.weight"] for n in PARTS}
            y = self.normed(x, w["attn_norm"])
            q, k_, v = (self.split(y @ w[f"attn_{n}"].T) for n in "qkv")
            mixed = self.attention(q, k_, v, setting).transpose(0, 1).flatten(1)
            x = x + (mixed @ w["attn_output"].T).float()
            y = self.normed(x, w["ffn_norm"])
            x = x + ((silu(y @ w["ffn_gate"].T) * (y @ w["ffn_up"].T)) @ w["ffn_down"].T).float()
        x = self.normed(x[kept], self.weights["output_norm.weight"])
        return (x @ self.weights["token_embd.weight"].T).float()

    def normed(self, x, weight):
        return rms_norm(x, weight.shape, weight, self.eps).to(self.dtype)

    def split(self, y):
        """(tokens, heads size) as (heads, tokens, size)."""
        return y.unflatten(1, (-1, self.size)).transpose(0, 1)

    def turned(self, x, at):
        """Vectors turned at their positions, by pairs of numbers half a head apart."""
        frequencies, amplitude = self.turn
        angle = at.double()[:, None] * frequencies
        cos, sin = (amplitude * f(angle).float() for f in (torch.cos, torch.sin))
        a, b = x.float().chunk(2, -1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1).to(self.dtype)

    def attention(self, q, k, v, setting):
        at, groups = torch.arange(q.shape[1], device=self.device), self.heads // self.key_heads
        k, v = (x.repeat_interleave(groups, 0) for x in (k, v))
        if setting.get("scale"):
            factor = ((at + 1).float().log() / math.log(TRAINED)).clamp(min=1)
            q = (q * factor[:, None]).to(self.dtype)
        near_q, near_k = self.turned(q, at), self.turned(k, at)
        if not setting.keys() & {"group", "window"}:
            each = (x[None] for x in (near_q, near_k, v))
            return scaled_dot_product_attention(*each, is_causal=True)[0]
        far_q = far_k = None
        if "group" in setting:
            g, w = setting["group"]
            far_q, far_k = self.turned(q, at // g + w - w // g), self.turned(k, at // g)
        elif setting.get("cached"):
            far_q, far_k = self.turned(q, at.clamp(max=setting["window"] + SINKS - 1)), near_k
        mixed = []
        for part in at.split(512):
            seen = slice(0, int(part[-1]) + 1)
            distance = part[:, None] - at[seen]
            logits = products(near_q[:, part], near_k[:, seen])
            other = None
            if far_q is not None:
                other = products(far_q[:, part], far_k[:, seen])
            hidden = distance < 0
            if "group" in setting:
                logits = torch.where(distance >= setting["group"][1], other, logits)
            else:
                first = at[seen] < setting.get("sinks", 0)
                hidden = hidden | ((distance >= setting["window"]) & ~first)
                if other is not None:
                    logits = torch.where(first, other, logits)
            logits = (logits / math.sqrt(self.size)).masked_fill(hidden, -math.inf)
            mixed.append(logits.softmax(-1).to(self.dtype) @ v[:, seen])
        return torch.cat(mixed, 1)


def products(q, k):
    """Logits in float32, as fused kernels keep them."""
    return q.float() @ k.float().transpose(1, 2)


def turns(base, d, length, setting):
    """Inverse frequencies of a setting in float64, and the factor of cosines and sines."""
    kind, factor = setting.get("rope"), setting.get("factor", 1)
    pairs = torch.arange(0, d, 2, dtype=torch.float64)
    if kind in ("base", "dynamic"):  # the base that turns the slowest pair that much slower
        more = factor if kind == "base" else factor * max(1, length / TRAINED) - (factor - 1)
        base = base * more ** (d / (d - 2))
    theta = base ** (-pairs / d)
    if kind == "linear":
        return theta / factor, 1.0
    whole = TRAINED * theta / (2 * math.pi)  # turns in a trained row
    if kind == "llama3":
        mix = ((whole - 1) / 3).clamp(0, 1)
        return theta * mix + theta / factor * (1 - mix), 1.0
    if kind == "yarn":
        low, high = (
            d * math.log(TRAINED / (n * 2 * math.pi)) / (2 * math.log(base)) for n in (32, 1)
        )
        low, high = max(math.floor(low), 0), min(math.ceil(high), d - 1)
        ramp = ((torch.arange(d // 2).double() - low) / max(high - low, 0.001)).clamp(0, 1)
        return theta / factor * ramp + theta * (1 - ramp), 1 + 0.1 * math.log(factor)
    return theta, 1.0


# -- rows -----------------------------------------------------------------------------------------


def registered():
    """By text: tokens of each row with its last target, and its needles."""
    said = json.loads((HERE / "needles.json").read_text())
    with np.load(HERE / "rows.npz") as kept:
        rows = {name: torch.from_numpy(kept[name].astype(np.int64)) for name in said}
    return {name: list(zip(rows[name], said[name], strict=True)) for name in said}


def read(model, tokens, said, setting):
    """Mean loss of the targets before the questions; of each needle its log probability and whether
    each token of its answer is the likeliest."""
    begin = TO - setting.get("cut", TO)
    end = said["questions"] - 16
    answers = [torch.arange(*n["answer"]) for n in said["needles"]]
    targets = torch.cat([torch.arange(end - TARGETS, end), *answers])
    scores = model.scores(tokens[begin:-1], targets - 1 - begin, setting).log_softmax(-1).cpu()
    nats = scores.gather(1, tokens[targets, None])[:, 0]
    hits = scores.argmax(-1) == tokens[targets]
    sizes = [TARGETS, *map(len, answers)]
    loss, *each = nats.split(sizes)
    _, *right = hits.split(sizes)
    needles = [[round(float(x.sum()), 4), bool(h.all())] for x, h in zip(each, right, strict=True)]
    return {"loss": round(-float(loss.double().mean()), 5), "needles": needles}


def measure(model, todo):
    """Each job with what the row gives."""
    texts = registered()
    for job in todo:
        yield job, read(model, *texts[job[0]][job[1]], SETTINGS[job[2]])


def forecast(path, todo):
    """The needles of a row as the gap probe of farfield says them, and the cost of positions."""
    from forecasts import said

    yield from said(path, registered(), todo)


def jobs(task):
    """Rows under settings, in the order they are read."""
    if task == "measure":
        names, texts = [*SETTINGS], ("jargon", "perl")
        parts = ((ROWS, names[:FIRST]), (ROWS, names[FIRST:]), (LATER, names))
        return [(t, k, name) for rows, some in parts for k in rows for t in texts for name in some]
    from forecasts import ASKED

    return ASKED


def main():
    """Run the jobs of a task that have no line yet."""
    parser = argparse.ArgumentParser()
    parser.add_argument("task", choices=("measure", "forecast"))
    parser.add_argument("--model", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--minutes", type=float, default=math.inf)
    asked = parser.parse_args()
    out, begun = Path(asked.out), time.monotonic()
    lines = out.read_text().splitlines() if out.exists() else []
    done = {tuple(json.loads(line)["job"]) for line in lines}
    todo = [job for job in jobs(asked.task) if tuple(job) not in done]
    if asked.task == "measure":
        model = Model(asked.model, asked.device, getattr(torch, asked.dtype))
        results = measure(model, todo)
    else:
        results = forecast(asked.model, todo)
    last = time.monotonic()
    for n, (job, result) in enumerate(results, 1):
        spent, last = time.monotonic() - last, time.monotonic()
        with out.open("a") as file:
            file.write(json.dumps({"job": job, **result, "seconds": round(spent, 2)}) + "\n")
        print(f"{n} of {len(todo)}, {last - begun:.0f} s: {job}", flush=True)
        if last - begun > 60 * asked.minutes:
            break


if __name__ == "__main__":
    main()
