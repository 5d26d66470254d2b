"""Numbers in captions and axes, beside the table of results."""

import numpy as np

from farfield.figures import curves
from farfield.validation.results import results


def test_perplexities_are_compared_from_the_training_length():
    values = {
        "alibi": {32: {0: 9.0}, 64: {0: 1.0, 1: 3.0}, 1024: {0: 1.0, 1: 3.05}},
        "rope": {32: {0: 0.5}, 64: {0: 2.0}, 1024: {0: 6.0}},
    }
    told = curves.kept(values, 64)
    assert told == "From 64 to 1024 tokens perplexities hold for ALiBi; they rise for RoPE 3-fold."


def test_attention_fields_are_shares_of_their_rows():
    drawing = curves.attention_fields(results(), "qin2024.fig5", "alibi", "kerple_log", "type2")
    rows = [dict(zip(drawing.data.columns, row, strict=True)) for row in drawing.data.rows]
    least = min(row["eps"] for row in rows)
    lengths = {row["row"] for row in rows}
    assert (
        f"All but {least:g} of the attention needs a share of the {lengths.pop()} tokens"
        in (drawing.caption)
        and not lengths
    )
    for name, title in (("alibi", "ALiBi"), ("kerple_log", "KERPLE-log"), ("type2", "Type 2")):
        own = [row for row in rows if row["encoding"] == name and row["eps"] == least]
        assert own and all(row["row"] != 64 for row in own)
        share = np.mean([row["attention ERF"] / row["row"] for row in own])
        assert f"{share:.0%} for {title}" in drawing.caption, drawing.caption
