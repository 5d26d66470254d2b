"""Plans of many runs: encodings, seeds, training lengths and presets, read from a TOML file.

    title = "..."
    [[sweep]]
    encodings = [
        "alibi",
        { label = "hybrid", layers = [{ mechanism = "rope", window = 16 }, "0"] },   # a hybrid
        { name = "alibi", dialect = "shift", delta = -3, label = "alibi -3" },
        { name = "[-n/4; 0 x7]", label = "one", family = "mixtures" },       # a formula a head,
    ]                          # or one for each head of each layer, layer by layer
    seeds = [0, 1]
    presets = ["small"]
    lengths = [64]             # training lengths; the preset's own where none is given
    layers = [2, 4]            # depths, widths, heads and training steps likewise
    widths = [128]
    heads = [8]
    steps = [1000]
    text = "builtin:documentation"     # in place of the text that the plan runs on
    stretch = true             # the bias p(n L0 / L), L0 the preset's length, L the training length
    multiples = [1, 4, 16]     # test lengths, in training lengths
    tested = [8, 64]           # the same in tokens, in place of multiples
    far = 144                  # one more in training lengths, without overlap only
    window = 256               # a sliding window of so many tokens at inference
    windows = [256]            # such windows beside causal attention
    bca = true                 # rotations and sinusoids with blockwise causal attention too
    measure = { last_tokens = 256 }    # other settings of `presets.Measurement`
    task = { kind = "induction" }      # in place of a text: fields of `tasks.Task`
    probe = { distances = [8, 500] }   # of a task: fields of `presets.Probes`

A job is one run: its name, its configuration and its key in the store. Jobs run in the order of the
file, all encodings for one seed before the next seed. An interrupted plan so has complete seeds.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, InstanceOf, StrictBool, StrictStr

from farfield.theory.answers.errors import InputError, refuse
from farfield.theory.encodings import LISTED, Encoding, encoding
from farfield.validation.harness.configuration import (
    Configuration,
    LayerPlan,
    fitted,
    hybrid,
    key,
    read_layers,
)
from farfield.validation.harness.corpus import Corpus
from farfield.validation.harness.corpus import corpus as read_text
from farfield.validation.harness.mechanism import Visibility
from farfield.validation.harness.presets import (
    Counts,
    Measurement,
    Natural,
    Preset,
    Probes,
    preset,
    resized,
    settings,
)
from farfield.validation.harness.tasks import Task

_RIVALS = (("multiples", "tested"), ("bca", "window"), ("bca", "windows"), ("window", "windows"))
MAX_BYTES = 2**24
ROTATED = ("rotation", "rotation_decay", "sinusoidal")


@dataclass(frozen=True)
class PlannedEncoding:
    """An encoding of a plan, before it is known how many heads the model has.

    Args:
        label: its name in the results.
        family: what it is counted with when a rule is judged; its label where nothing is said.
        options: what `farfield.theory.encodings.encoding` takes.
        listed: layers of a hybrid, as the plan has them; none where all layers are alike.
    """

    label: str
    options: Mapping[str, Any]
    family: str = ""
    listed: tuple[Any, ...] = ()

    def layers(self, heads: int) -> tuple[LayerPlan, ...]:
        """The layers of a hybrid, in models with so many heads; none where all are alike."""
        try:
            return read_layers(self.listed, heads)
        except InputError as error:
            raise InputError(f"{self.label}: {error}") from None

    def encoding(self, heads: int) -> Encoding:
        """The encoding, with so many heads where it has one formula a head."""
        return hybrid(self.label) if self.listed else fitted(heads, **self.options)


def _subject(given: Any) -> PlannedEncoding:
    """An entry of `encodings`; what is wrong whatever the model is refused now."""
    options = dict(given) if isinstance(given, dict) else {"name": given}
    label, family = options.pop("label", None), options.pop("family", None)
    if "layers" in options:
        listed = options.pop("layers")
        refuse(
            options or not isinstance(label, str) or not isinstance(listed, list) or not listed,
            f"hybrid {label!r}; accepted is a label, a list of layers, one entry each, and a "
            "family",
        )
        subject = PlannedEncoding(label, {}, str(family or label), tuple(listed))
        subject.layers(1)
        return subject
    refuse(
        not isinstance(options.get("name"), (str, list)),
        f"encoding {given!r}; accepted: a name, a formula, heads such as "
        '"[-n/4; 0 x7]", or a table with a name',
    )
    found = encoding(**options)
    named = isinstance(options["name"], str) and found.source != LISTED
    label = str(label or (options["name"] if named else found.name))
    return PlannedEncoding(label, options, str(family or label))


Subject = Annotated[InstanceOf[PlannedEncoding], BeforeValidator(_subject)]


@settings
class Sweep:
    """A product of encodings, seeds and architectures; see the module's text."""

    encodings: Annotated[tuple[Subject, ...], Field(min_length=1)]
    seeds: Annotated[tuple[Natural, ...], Field(min_length=1)] = (0,)
    lengths: Counts = ()
    presets: Annotated[tuple[StrictStr, ...], Field(min_length=1)] = ("demo",)
    layers: Counts = ()
    widths: Counts = ()
    heads: Counts = ()
    steps: Counts = ()
    text: StrictStr = ""
    stretch: StrictBool = False
    multiples: Counts = ()
    tested: Counts = ()
    far: Natural = 0
    window: Natural = 0
    windows: Counts = ()
    bca: StrictBool = False
    measure: Mapping[str, Any] = field(default_factory=dict)
    task: Mapping[str, Any] | None = None
    probe: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for one, other in _RIVALS:
            refuse(
                getattr(self, one) and getattr(self, other),
                f"{one} and {other} are both given; accepted is one of them",
            )
        for name in self.presets:
            preset(name)
        Measurement(**self.measure), Probes(**self.probe)  # refused now, with their own messages

    def architectures(self) -> Iterator[Preset]:
        """The presets with each length, depth, width and number of heads and of steps."""
        for base in map(preset, self.presets):
            for length, layers, width, heads, steps in itertools.product(
                self.lengths or (base.length,),
                self.layers or (base.layers,),
                self.widths or (base.width,),
                self.heads or (base.heads,),
                self.steps or (base.steps,),
            ):
                chosen = resized(base, length)
                yield dataclasses.replace(
                    chosen, layers=layers, width=width, heads=heads, steps=steps
                )

    def subjects(self, chosen: Preset) -> Iterator[tuple[PlannedEncoding, Encoding]]:
        """The encodings as a model of this architecture has them."""
        for subject in self.encodings:
            found = subject.encoding(chosen.heads)
            if self.stretch and not subject.listed:
                factor = Fraction(chosen.length, preset(chosen.name).length)
                found = found.stretched(factor)
                label = f"{subject.label} stretched {factor}" if factor != 1 else subject.label
                subject = dataclasses.replace(subject, label=label)
            yield subject, found

    def measured(self, length: int) -> dict[str, Any]:
        """The settings of a measurement that this sweep changes, at a training length."""
        found = dict(self.measure)
        if self.far:
            found["far"] = self.far * length
        if lengths := self.tested or tuple(length * m for m in self.multiples):
            found["lengths"] = lengths
        return found

    def inference(self, found: Encoding, length: int) -> tuple[Visibility, ...]:
        """How a model of this encoding is measured; none where only as it was trained."""
        if self.window:
            return (Visibility(window=self.window),)
        if self.bca and found.mechanism in ROTATED:
            return (Visibility(), Visibility(bca=found.bca or length // 2))
        if self.windows:
            return (Visibility(), *(Visibility(window=w) for w in self.windows))
        return ()

    def jobs(self, corpus: Corpus) -> Iterator[Job]:
        """Its runs on a text, or on its own."""
        corpus, task = read_text(self.text) if self.text else corpus, None
        if self.task is not None:
            text = corpus if self.task.get("kind") == "needle" else None
            task = Task(**{**self.task, "text": text})
        for chosen in self.architectures():
            settings = self.measured(chosen.length)
            measure = dataclasses.replace(chosen.measurement, **settings)
            probes = Probes(**{"lengths": settings.get("lengths", ()), **self.probe})
            for seed in self.seeds:
                for subject, found in self.subjects(chosen):
                    configuration = Configuration(
                        found,
                        corpus,
                        chosen,
                        seed,
                        measure,
                        self.inference(found, chosen.length),
                        subject.layers(chosen.heads),
                        task,
                        probes,
                    )
                    yield Job(subject.label, configuration, subject.family)


@dataclass(frozen=True)
class Job:
    """One run of a plan, by the name that its result carries; with the SHA-256 of the
    predictions."""

    label: str
    configuration: Configuration
    family: str = ""
    predictions: str | None = None

    @cached_property
    def key(self) -> str:
        """The key of its run in a store."""
        return key(self.configuration.training())

    @cached_property
    def measured(self) -> list[str]:
        """The keys of its measurements."""
        return [key(self.configuration.measured(v)) for v in self.configuration.variants]

    @property
    def name(self) -> str:
        """Label, training length, seed, and what else is not the preset's own."""
        chosen = self.configuration.preset
        own = preset(chosen.name)
        name = f"{self.label}, {chosen.length}, {self.configuration.seed}"
        for what in ("layers", "width", "heads", "steps"):
            if getattr(chosen, what) != getattr(own, what):
                name += f", {what} {getattr(chosen, what)}"
        return name


@settings
class Plan:
    """What a plan file holds."""

    sweeps: Annotated[
        tuple[
            Annotated[
                InstanceOf[Sweep],
                BeforeValidator(lambda given: Sweep(**given) if isinstance(given, dict) else given),
            ],
            ...,
        ],
        Field(alias="sweep", min_length=1),
    ]
    title: str = "sweep"

    def jobs(self, corpus: Corpus) -> tuple[Job, ...]:
        """Every run of the plan, each once.

        Raises:
            InputError: an encoding that cannot be trained, a text that is too short, one name for
                unlike runs, or one run with unlike measurements.
        """
        found: dict[str, Job] = {}
        names: dict[tuple[str, str], Job] = {}
        for job in self._each(corpus):
            chosen = job.configuration.preset.name
            refuse(
                names.setdefault((chosen, job.name), job).key != job.key,
                f"plan: {job.name!r} (label, length, seed) is the name of two unlike runs; "
                "accepted: a label = ... for one of the encodings",
            )
            refuse(
                found.setdefault(job.key, job).measured != job.measured,
                f"plan: {job.name!r} (label, length, seed) is asked for twice, with unlike "
                "measurements; accepted: one sweep with all test lengths",
            )
        return tuple(found.values())

    def _each(self, corpus: Corpus) -> Iterator[Job]:
        for at, sweep in enumerate(self.sweeps):
            try:
                yield from sweep.jobs(corpus)
            except InputError as error:
                raise InputError(f"plan: sweep.{at}: {error}") from None


def read_plan(path: str | os.PathLike[str]) -> Plan:
    """The plan in a TOML file.

    Raises:
        InputError: the file cannot be read, or holds what no plan holds; one line says what.
    """
    try:
        with open(path, "rb") as file:
            text = file.read(MAX_BYTES + 1)
        if len(text) > MAX_BYTES:
            raise ValueError(f"it has more than {MAX_BYTES:,} bytes")
        content = tomllib.loads(text.decode())
    except OSError as error:
        raise InputError(f"plan {str(path)!r} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # with dates and numbers beyond Python's
        raise InputError(f"plan {str(path)!r} is no TOML text: {error}") from None
    return parse_plan(content)


def parse_plan(content: Mapping[str, Any]) -> Plan:
    """The plan in what a TOML file holds.

    >>> plan = parse_plan({"sweep": [{"encodings": ["alibi", "-2*log(1+n)"], "seeds": [0, 1]}]})
    >>> [subject.label for subject in plan.sweeps[0].encodings]
    ['alibi', '-2*log(1+n)']
    """
    return Plan(**content)
