"""How much longer sliding-window inference takes than non-overlapping inference [Q, Table 1].

In a window that moves by one token every token is encoded as often as the window is long; without
overlap once. Both are measured in this process in turn, on the same number of scored tokens, with
full batches; what is reported is the ratio. A time does not depend on the weights, so

    python -m farfield.validation.harness.measures.inference_time

measures an untrained model of preset `small` with a linear bias, in about a minute.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from farfield.theory.answers.answer import Label, Result
from farfield.theory.answers.blocks import Block, sentence, table
from farfield.theory.encodings import encoding
from farfield.validation.harness.measures.perplexity import sliding_window
from farfield.validation.harness.model import Transformer
from farfield.validation.harness.positional import initialised
from farfield.validation.harness.presets import preset
from farfield.validation.harness.reading import corpus


@dataclass(frozen=True, repr=False)
class InferenceTime(Result):
    """Measured times of both ways of inference.

    Fields:
        windows: tokens.
        sliding, whole: seconds a scored token at each window, medians over `repeats`.
        ratios: their quotients.
        ratio: the mean of the ratios, as in [Q, Table 1] over windows.
        ratio_of_sums: of the summed times, which the wider windows dominate.
        repeats: measurements of each.
    """

    windows: tuple[int, ...]
    sliding: tuple[float, ...]
    whole: tuple[float, ...]
    ratios: tuple[float, ...]
    ratio: float
    ratio_of_sums: float
    repeats: int

    def blocks(self) -> Sequence[Block]:
        rows = zip(self.windows, (f"{ratio:.1f}" for ratio in self.ratios), strict=True)
        return (
            sentence(
                "Sliding-window inference is {ratio} times slower than non-overlapping inference "
                "on average, medians of {repeats}.",
                Label.MEASURED,
                ratio=f"{self.ratio:.1f}",
                repeats=self.repeats,
            ),
            table(("window", "times slower"), list(rows), numeric=(0, 1)),
        )


def relative_inference_time(
    model: Transformer,
    text: np.ndarray,
    windows: Sequence[int] = (16, 32, 64, 128, 256, 512),
    *,
    tokens: int = 8192,
    repeats: int = 3,
) -> InferenceTime:
    """Time of sliding-window inference with stride 1 against that of non-overlapping inference.

    Args:
        model: the model.
        text: of bytes or tokens, one-dimensional, longer than the widest window.
        windows: tokens; [Q] prints 16, 32, 64, 128, 258, 512.
        tokens: encoded in a measurement, rounded to whole windows.
        repeats: measurements, taken in turn.

    Raises:
        InputError: the text is shorter than the widest window, or the encoding knows less.
    """
    sliding, whole = [], []
    for window in windows:
        count = max(1, tokens // window)
        seconds: dict[int, list[float]] = {1: [], window: []}
        for _ in range(repeats):
            for stride, each in seconds.items():
                began = time.perf_counter()
                (found,) = sliding_window(model, text, (window,), stride=stride, windows=count)
                if model.device.type == "cuda":
                    torch.cuda.synchronize()
                each.append((time.perf_counter() - began) / found.targets)
        sliding.append(statistics.median(seconds[1]))
        whole.append(statistics.median(seconds[window]))
    ratios = tuple(a / b for a, b in zip(sliding, whole, strict=True))
    return InferenceTime(
        tuple(windows),
        tuple(sliding),
        tuple(whole),
        ratios,
        statistics.mean(ratios),
        sum(sliding) / sum(whole),
        repeats,
    )


def main() -> None:
    """Measure and print the times of this machine."""
    model = initialised(encoding("-n/16"), preset("small"), 0).eval()
    print(relative_inference_time(model, corpus().held_out))


if __name__ == "__main__":
    main()
