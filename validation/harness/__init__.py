"""The harness: small language models with any positional encoding, trained, run and measured.

`model` and `attention` need torch alone; what is asked of a run (`presets`, `configuration`,
`plan`) needs no torch.
"""
