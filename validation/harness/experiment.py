"""One whole run: train, or find the finished training, then measure, or find the measurement."""

from __future__ import annotations

import contextlib
import io
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from farfield.theory.answers.errors import refuse
from farfield.theory.answers.names import one_of
from farfield.validation.harness import parallel
from farfield.validation.harness.configuration import Configuration, key
from farfield.validation.harness.measures.perplexity import (
    binned,
    losses_at,
    perplexities,
    summary,
)
from farfield.validation.harness.measures.recall import recall
from farfield.validation.harness.measures.receptive_fields import (
    attention_receptive_field,
    expected_scores,
    gradient_receptive_field,
)
from farfield.validation.harness.mechanism import Visibility
from farfield.validation.harness.model import Transformer
from farfield.validation.harness.positional import initialised
from farfield.validation.harness.store import Store, began, stored
from farfield.validation.harness.training import (
    TrainingDiverged,
    read_tensors,
    require_tensors,
    train,
    write_tensors,
)
from farfield.validation.json_files import CorruptFile, read_json, recorded, write, write_json
from farfield.validation.progress import Progress, silent


def train_and_measure(
    configuration: Configuration,
    store: Store,
    progress: Progress = silent,
    checkpoint_every: float = 30.0,
    device: str = "auto",
    wait: bool = True,
    predictions: str | None = None,
) -> dict[str, Any]:
    """One run, from a configuration to its result; finished parts in the store are not repeated.

    Args:
        configuration: what to train and to measure.
        store: where runs are kept. A corrupted run is set aside there and made again, and the
            result's `notes` say so.
        progress: called as `progress(stage, done, total, note)`; stages are `train`,
            `perplexity, ...`, `receptive fields, ...` and `notice` (0 of 0, the note matters).
        checkpoint_every: seconds between the checkpoints of a training. A training that was
            killed is resumed from its last one, to the same weights, bit for bit, on a CPU.
        device: `auto` (a GPU if there is one), `cpu` or `cuda`. It is in no key: the same
            configuration has one run, wherever it was made; `environment` says where.
        wait: for another process that works on the same run.
        predictions: SHA-256 of the predictions; the run says it, with the time it began
            and the commit.

    Returns:
        The result in JSON form: `schema`, `key`, `encoding`, `seed`, `preset`, `text`, `training`
        (`Training`, with `learned`, the learned parameters a head; `parameters`, `environment`,
        `began`), `notes`, and `measurements`, one for each of the configuration's `variants`. Each
        has `inference`, `perplexity` (`Perplexity`, both protocols), `attention` (`AttentionField`,
        one a threshold), `bounds` (`Bounds` and its `violations`), `gradient` (`GradientField`),
        `settings`, `environment`, `seconds` and `cpu_seconds`. Where the measurement asks for them
        it has `positions` (`PositionPerplexity`) and `scores` (`ExpectedScores`). Of a task each
        measurement has the last four, `recall` (`Recall`) and `logits` alone. `logits` names the
        file with the content logits of the retrieving head.

    Raises:
        InputError: the store cannot be written to, or there is no GPU when one is asked for.
        InUse: another process works on this run, and `wait` is false.
        TrainingDiverged: the loss is not finite; the message names the last good state, if the
            training had come as far as a checkpoint.
    """
    place, notes = chosen_device(device), list[str]()

    def notice(note: str) -> None:
        notes.append(note)
        progress("notice", 0, 0, note)

    def waiting() -> None:
        progress("notice", 0, 0, "waiting for another process")

    described, chosen = configuration.training(), configuration.encoding
    labels = {"encoding": chosen.name, "dialect": chosen.dialect}
    labels["preset"] = configuration.preset.name
    run, names = key(described), list[str]()
    with store.locked(run, waiting if wait else None) as folder:

        def made() -> Transformer:
            model = _finished(configuration, folder)
            if model is None:
                now = began(folder, predictions)
                asked = {"configuration": described, "labels": labels, "began": now}
                return _trained(configuration, folder, asked, progress, checkpoint_every, place)
            parallel.nothing_to_train()
            return model.to(place)

        try:
            model = made()
        except CorruptFile as error:
            aside = store.set_aside(run)
            notice(f"a corrupted run was set aside as {aside.name} and made again: {error}")
            model = made()
        for visible in configuration.variants:
            settings = configuration.measured(visible)
            names.append(f"measurement-{key(settings)}")
            path, known = folder / f"{names[-1]}.json", False
            try:
                known = path.exists() and bool(read_json(path))
            except CorruptFile as error:
                os.replace(path, path.with_suffix(".corrupt"))
                notice(f"a corrupted measurement was set aside and made again: {error}")
            if not known:
                kept = folder / f"logits-{key(settings)}.npz"
                found = _measured(configuration, model, visible, progress, kept)
                write_json(path, {"settings": settings, **found})
        return stored(folder, names, labels) | {"notes": notes}


def fresh(configuration: Configuration) -> Transformer:
    """The model of a configuration with its initial weights."""
    return initialised(
        configuration.encoding,
        configuration.preset,
        configuration.seed,
        configuration.vocabulary,
        configuration.layers,
    )


def follow(configuration: Configuration, device: str = "auto") -> None:
    """Take part in the training that process 0 does, if it does one; it alone has the result."""
    preset, data = configuration.preset, configuration.data
    model = fresh(configuration).to(chosen_device(device))
    with contextlib.suppress(parallel.NothingToTrain, TrainingDiverged):
        train(model, data, preset, configuration.seed)


def trained_model(configuration: Configuration, store: Store) -> Transformer | None:
    """The trained model of a configuration, in evaluation mode; None unless its run is finished.

    Raises:
        CorruptFile: its files were changed later.
    """
    return _finished(configuration, store.folder(key(configuration.training())))


def chosen_device(name: str = "auto") -> torch.device:
    """The device of this name.

    Raises:
        InputError: the name is not known, or there is no GPU.

    >>> chosen_device("cpu")
    device(type='cpu')
    """
    one_of(name, "device", ("auto", "cpu", "cuda"))
    visible = torch.cuda.is_available()
    refuse(
        name == "cuda" and not visible,
        "device 'cuda': torch sees no GPU here; accepted: cpu, or auto",
    )
    return torch.device("cuda" if visible and name != "cpu" else "cpu")


def environment(device: torch.device, processes: int = 1) -> dict[str, Any]:
    """Versions and the class of machine: what a number may depend on, and no name of a host."""
    found = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
    }
    if processes > 1:
        found["processes"] = processes
    if device.type == "cuda":
        found |= {"gpu": torch.cuda.get_device_name(device), "cuda": torch.version.cuda}
    return found


def _finished(configuration: Configuration, folder: Path) -> Transformer | None:
    """The trained model."""
    if not (folder / "training.json").exists():
        return None
    record = read_json(folder / "training.json")
    weights = read_tensors(folder / "weights.safetensors", record["weights_sha256"])
    model = fresh(configuration)
    require_tensors(model, weights, f"{folder.name}/weights.safetensors")
    model.load_state_dict(weights)
    return model.eval()


def _trained(
    configuration: Configuration,
    folder: Path,
    asked: dict[str, Any],
    progress: Progress,
    checkpoint_every: float,
    device: torch.device,
) -> Transformer:
    model = fresh(configuration)
    model.bias_table(configuration.longest)  # refused now, not at the end
    write_json(folder / "asked.json", asked)  # what an unfinished run is listed by
    data, preset, seed = configuration.data, configuration.preset, configuration.seed
    try:
        training = train(model.to(device), data, preset, seed, progress, folder, checkpoint_every)
    except TrainingDiverged:
        (folder / "asked.json").unlink(missing_ok=True)
        raise
    record = {
        **asked,
        "text": configuration.described(),
        **recorded(training),
        "parameters": sum(p.numel() for p in model.parameters()),
        "learned": model.learned_values(),
        "weights_sha256": write_tensors(folder / "weights.safetensors", model.state_dict()),
        "environment": environment(device, parallel.size()),
    }
    write_json(folder / "training.json", record)
    for path in (folder / "asked.json", *folder.glob("checkpoint*")):
        path.unlink()
    return model


def _measured(
    configuration: Configuration,
    model: Transformer,
    visible: Visibility,
    progress: Progress,
    kept: Path,
) -> dict[str, Any]:
    start, start_cpu = time.perf_counter(), time.process_time()

    def stage(name: str) -> Callable[[int, int], None]:
        return lambda done, total: progress(name, done, total, str(visible))

    if configuration.task is None:
        found = _of_text(configuration, model, visible, stage)
    else:
        task, asked, trained = configuration.task, configuration.asked, configuration.preset.length
        recalled, logits = recall(model, task, asked, trained, visible, stage("recall"))
        content = io.BytesIO()
        np.savez(content, **logits)
        write(kept, content.getvalue())
        found = {"recall": recorded(recalled), "logits": kept.name}
    return {
        "inference": visible.described() | {"label": str(visible)},
        **found,
        "environment": environment(model.device),
        "seconds": round(time.perf_counter() - start, 2),
        "cpu_seconds": round(time.process_time() - start_cpu, 2),
    }


def _of_text(
    configuration: Configuration,
    model: Transformer,
    visible: Visibility,
    stage: Callable[[str], Callable[[int, int], None]],
) -> dict[str, Any]:
    measure, text = configuration.settings, configuration.corpus.held_out
    lengths, targets = measure.lengths, measure.last_tokens

    def how(name: str) -> dict[str, Any]:
        return {"visible": visible, "progress": stage(f"perplexity{name}")}

    losses = losses_at(model, text, lengths, measure.blocks, **how(", non-overlapping"))
    found = summary("non-overlapping", model.length, lengths, losses)
    found += perplexities(model, text, lengths, targets, 1, **how(", last token"))
    for stride in measure.strides:
        wide, name = [n for n in lengths if n >= stride], f"sliding window, stride {stride}"
        each = how(f", stride {stride}")
        found += perplexities(model, text, wide, targets, stride, name, **each)
    if measure.far:
        blocks = max(1, measure.blocks * lengths[-1] // measure.far)
        both = (configuration.preset.length, measure.far)
        found += perplexities(model, text, both, blocks, **how(f" at {measure.far}"))[1:]
    more: dict[str, Any] = {}
    rows, segments = measure.row_length, measure.row_segments
    if measure.positions:
        more["positions"] = recorded(binned(losses[-1], measure.positions))
    if measure.scores:
        more["scores"] = recorded(
            expected_scores(model, text, length=measure.scores, segments=segments, visible=visible)
        )
    attention, bounds = attention_receptive_field(
        model,
        text,
        thresholds=measure.thresholds,
        length=rows,
        segments=segments,
        rows=measure.rows,
        visible=visible,
    )
    stage("receptive fields")(1, 2)
    gradient = gradient_receptive_field(
        model,
        text,
        share=measure.share,
        length=measure.gradient_length or lengths[-1],
        segments=measure.gradient_segments,
        visible=visible,
    )
    stage("receptive fields")(2, 2)
    return {
        "perplexity": recorded(found),
        "attention": recorded(attention),
        "bounds": recorded(bounds) | {"violations": bounds.violations},
        "gradient": recorded(gradient),
        **more,
    }
