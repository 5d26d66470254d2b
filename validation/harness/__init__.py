"""The harness: small language models with any positional mechanism, trained, measured and compared.

One file a thing, in the order in which they read each other: `settings` (what users write),
`attention` (its specification and fast paths), `model`, `mechanism` (what an encoding means),
`bias`, `data`, `train`, `measure`, `runs`. A new bias is a module of your own or of `bias`. A
change of queries and keys goes into `Layer.qkv`, a change of the softmax into `Layer.attend`, a
setting into `LayerSettings`.

From Python, with a bias, a text and a plan of your own:

>>> import torch
>>> from farfield.validation.harness.data import read_text
>>> from farfield.validation.harness.measure import perplexities
>>> from farfield.validation.harness.model import LayerSettings, ModelSettings, Transformer
>>> from farfield.validation.harness.settings import Run
>>> from farfield.validation.harness.train import train
>>> class Fading(torch.nn.Module):
...     def forward(self, q, k, i, j):
...         return -(i[:, None] - j).clamp(min=0).sqrt()
>>> asked = Run(encoding="0", layers=2, width=32, heads=4, length=16, batch=8, steps=30, lr=0.01)
>>> sizes = ModelSettings(layers=[LayerSettings()] * 2, width=32, heads=4, length=16)
>>> model, text = Transformer(sizes, biases=[Fading(), Fading()]), read_text()
>>> history = train(model, text, asked)
>>> history[-1].held_out < 5
True
>>> [round(line.ratio) for line in perplexities(model, text.held_out, (16, 64), count=4)]
[1, 1]

A plan runs by `runs.sweep(runs.local(read_plan("plan.toml").expand(), "runs", ...))`, and gives
flat rows with the columns of the results table.
"""
