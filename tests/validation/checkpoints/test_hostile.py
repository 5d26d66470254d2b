"""Folders that somebody made to do harm: one line that names file and key, and nothing is run."""

import contextlib
import copy
import json
import os
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from farfield.cli import main
from farfield.theory.answers.answer import InputError
from farfield.theory.encodings import encoding
from farfield.validation.checkpoints.audit import audit
from farfield.validation.checkpoints.configured import families
from farfield.validation.checkpoints.folder import describe, described
from farfield.validation.checkpoints.guarded import (
    Config,
    document,
    headers,
    opened,
    parsed,
    require_plain,
    tensor,
)
from farfield.validation.checkpoints.loading import load
from farfield.validation.checkpoints.measured.windows import model_window
from farfield.validation.harness.configuration import Configuration
from farfield.validation.harness.experiment import train_and_measure
from farfield.validation.harness.store import Store
from farfield.validation.json_files import read_json, write_json

sys.path.insert(0, str(Path(__file__).parent))
from library import TINY, network, settings

pytestmark = pytest.mark.timeout(120)
INDEX = "model.safetensors.index.json"


def folder(root, **values):
    place = root / "model"
    place.mkdir()
    (place / "config.json").write_text(json.dumps({"model_type": "bloom", **values}))
    return place


def one_line(call, *parts):
    with pytest.raises(InputError) as caught:
        call()
    said = str(caught.value)
    assert "\n" not in said and len(said) < 400 and said.isprintable(), said
    assert all(part in said for part in parts), said


def pipe(place):
    os.mkfifo(place)


def device(place):
    place.symlink_to("/dev/zero")


def elsewhere(place):
    outside = place.parent.parent / "outside"
    outside.write_text('{"model_type": "bloom"}')
    place.symlink_to(outside)


def loop(place):
    place.symlink_to(place)


def dangling(place):
    place.symlink_to(place.parent / "nothing")


def enormous(place):
    with open(place, "wb") as file:
        file.truncate(1 << 40)


KINDS = {
    "pipe": (pipe, "pipe or device"),
    "device": (device, "leaves the folder"),
    "folder": (lambda place: place.mkdir(), "a folder, pipe or device"),
    "elsewhere": (elsewhere, "a link that leaves the folder"),
    "loop": (loop, "cannot be read"),
    "dangling": (dangling, "cannot be read"),
    "enormous": (enormous, ""),
}
TEXTS = {
    "deep": ('{"a":' + "[" * 100_000 + "]" * 100_000 + "}", "is nested more than 32 deep"),
    "deep keys": ('{"a":' * 100_000 + "1" + "}" * 100_000, "is nested more than 32 deep"),
    "deeper than meant": ("[" * 40 + "]" * 40, "no table"),
    "bytes": (b'{"model_type": "\xff"}', "not UTF-8 at byte 16"),
    "twice": (
        '{"model_type": "bloom", "n_head": 8, "n_head": 4}',
        "config.json has the key 'n_head' twice",
    ),
    "list": ("[1]", "is no table of keys"),
    "nothing": ("", "is not valid JSON"),
    "words": ("NaN", "is no table of keys"),
}


@pytest.mark.parametrize("name", ["config.json", INDEX, "model.safetensors", "training.json"])
@pytest.mark.parametrize("how", KINDS)
def test_what_is_no_file_of_the_folder(how, name, tmp_path):
    place = folder(tmp_path)
    make, message = KINDS[how]
    (place / name).unlink(missing_ok=True)
    make(place / name)
    if name == "training.json" and how in ("pipe", "device", "folder", "loop", "dangling"):
        assert describe(place).kind == "bloom"  # no run
        return
    read = headers if "model" in name else describe
    one_line(lambda: read(place), name, message)


@pytest.mark.parametrize("name", ["config.json", INDEX])
@pytest.mark.parametrize("how", TEXTS)
def test_what_is_no_document(how, name, tmp_path):
    place = folder(tmp_path)
    text, message = TEXTS[how]
    (place / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    message = message.replace("config.json", name)
    one_line(lambda: document(place, name), name, message)
    one_line(lambda: (describe if name == "config.json" else headers)(place), name, message)


def test_a_download_cache_is_read(tmp_path):
    """Its snapshots are links to blobs beside them; a link to anything else leaves the folder."""
    blobs, place = tmp_path / "blobs", tmp_path / "snapshots" / "abc"
    blobs.mkdir()
    place.mkdir(parents=True)
    (blobs / "1").write_text('{"model_type": "bloom"}')
    (place / "config.json").symlink_to("../../blobs/1")
    assert describe(place).kind == "bloom"
    (tmp_path / "other").write_text('{"model_type": "bloom"}')
    (place / "config.json").unlink()
    (place / "config.json").symlink_to("../../other")
    one_line(lambda: describe(place), "leaves the folder")


def stored(header):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(64)


def entry(**changes):
    return {"w": {"dtype": "F32", "shape": [4, 4], "data_offsets": [0, 64], **changes}}


HEADERS = {
    "long": (struct.pack("<Q", 1 << 60) + b"{}", "its header would take"),
    "short": (b"\1", "its header would take"),
    "deep": (stored(b'{"a":' * 50_000 + b"1" + b"}" * 50_000), "is nested"),
    "twice": (stored(b'{"w": {}, "w": {}}'), "model.safetensors has the key 'w' twice"),
    "bytes": (stored(b'{"\xff": 1}'), "UTF-8"),
    "number": (stored({"w": 3}), "w 3"),
    "offsets": (stored(entry(data_offsets=[0, 1 << 40])), "'w' that is not whole"),
    "backwards": (stored(entry(data_offsets=[64, 0])), "'w' that is not whole"),
    "three": (stored(entry(data_offsets=[0, 1, 2])), "'w' that is not whole"),
    "negative": (stored(entry(shape=[-4, -4])), "'w' that is not whole"),
    "huge": (stored(entry(shape=[10**400])), "'w' that is not whole"),
    "many": (stored(entry(shape=[10**19] * 100_000)), "'w' that is not whole"),
    "text": (stored(entry(shape="44")), "'w' that is not whole"),
    "type": (stored(entry(dtype=["F32"])), "'w' that is not whole"),
    "lengths": (stored(entry(shape=[4, 5])), "'w' that is not whole"),
}


@pytest.mark.parametrize("how", HEADERS)
def test_headers_of_weights(how, tmp_path):
    place = folder(tmp_path)
    content, message = HEADERS[how]
    (place / "model.safetensors").write_bytes(content)
    one_line(lambda: headers(place), "model.safetensors", message)


def test_whole_weights_are_read_as_the_library_reads_them(tmp_path):
    place = folder(tmp_path)
    for dtype in (np.float64, np.float32, np.float16):
        made = np.arange(6).reshape(2, 3).astype(dtype)
        save_file({"w": made, "i": np.arange(3)}, place / "model.safetensors")
        np.testing.assert_array_equal(tensor(place, "w"), made)
        assert headers(place)["i"].shape == (3,)
        one_line(lambda: tensor(place, "i"), "'i' as 24 bytes of 'I64'")


def test_large_files_are_read_at_once(tmp_path):
    """Hundreds of thousands of keys, one of them twice; a long list for every key of a family."""
    place = folder(tmp_path)
    many = [f'"k{n}": 0' for n in range(100_000)]
    (place / "config.json").write_text("{" + ", ".join([*many, '"k99999": 1']) + "}")
    one_line(lambda: describe(place), "config.json has the key 'k99999' twice")
    for key in ("num_hidden_layers", "layer_types", "rope_scaling"):
        values = {"model_type": "gemma3_text", key: [0] * 300_000}
        (place / "config.json").write_text(json.dumps(values))
        one_line(lambda: describe(place), "config.json", key)
    (place / "config.json").write_text(" " * (3 << 20))
    one_line(lambda: describe(place), "config.json has 3145728 bytes, more than 2097152")


@pytest.mark.parametrize("how", ["nan", "empty"])
def test_gains_that_bound_nothing(how, tmp_path):
    values = {"num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2}
    place = folder(tmp_path, model_type="qwen3", hidden_size=8, head_dim=4, **values)
    gain = {"nan": np.full(4, np.nan), "empty": np.zeros(0)}[how].astype(np.float32)
    names = [f"model.layers.0.self_attn.{which}_norm.weight" for which in "qk"]
    save_file(dict.fromkeys(names, gain), place / "model.safetensors")
    one_line(lambda: audit(place, bounds="weights"), names[0], "empty or not finite")


@pytest.mark.parametrize("value", [{"w": 3}, {"w": "../../x.safetensors"}, {"w": ["a"]}, [1], 7])
def test_an_index_names_files_of_the_folder(value, tmp_path):
    place = folder(tmp_path)
    (place / INDEX).write_text(json.dumps({"weight_map": value}))
    one_line(lambda: headers(place), INDEX)


@pytest.mark.parametrize("seed", range(3))
def test_weights_that_the_index_does_not_name_are_not_read(seed, tmp_path):
    """Files of other names, and tensors of other names and of the same in files that are named."""
    rng, place = np.random.default_rng(seed), folder(tmp_path)
    names = [f"w{k}" for k in range(6)]
    index = {name: f"model-{int(rng.integers(1, 4))}.safetensors" for name in names}
    for file in sorted({*index.values()}):
        own = {name: np.float32([k]) for k, name in enumerate(names) if index[name] == file}
        others = {name: np.float32([-1]) for name in names if index[name] != file}
        kept = {name: x for name, x in others.items() if rng.random() < 0.5}
        save_file(own | kept | {"more": np.float32([-1])}, place / file)
    stray = dict.fromkeys(names, np.float32([-1]))
    for name in ("a", "old_run", "zz-model", "consolidated"):
        save_file(stray, place / f"{name}.safetensors")
    (place / INDEX).write_text(json.dumps({"weight_map": index}))
    assert {*headers(place)} == {*names}
    assert [float(tensor(place, name)[0]) for name in names] == [*range(6)]
    save_file(stray, place / "model.safetensors")
    one_line(lambda: headers(place), "model.safetensors", "accepted: one of them")
    (place / INDEX).unlink()
    assert float(tensor(place, "w3")[0]) == -1
    (place / "model.safetensors").unlink()
    one_line(lambda: headers(place), "a.safetensors", "no model.safetensors")


@pytest.mark.parametrize("name", ["adapter_config.json", "adapter_model.safetensors"])
def test_an_adapter_is_refused_by_name(name, tmp_path):
    place = folder(tmp_path)
    save_file({"w": np.zeros(2, np.float32)}, place / "model.safetensors")
    (place / name).write_text("{}")
    for ask in (headers, require_plain, lambda p: tensor(p, "w")):
        one_line(lambda ask=ask: ask(place), name, "adapters merged")
    (place / "config.json").unlink()
    one_line(lambda: describe(place), name, "adapters merged")


def test_every_file_that_the_library_would_read(tmp_path):
    place = folder(tmp_path)
    require_plain(place)
    for name in ("generation_config.json", "tokenizer.json", "x.safetensors"):
        pipe(place / name)
        one_line(lambda: require_plain(place), name)
        one_line(lambda: load(describe(place)), name)
        (place / name).unlink()


class Asked(dict):
    """A table that writes down which keys are asked for."""

    def __init__(self, values, asked):
        super().__init__(values)
        self.asked = asked

    def get(self, key, usual=None):
        self.asked.add(key)
        return super().get(key, usual)


HOSTILE = (
    *(-1, 0, 1, 3, 10**6, 10**18, 10**400, -(10**400), 0.0, 0.5, -0.5, 1e308, 1e-308, 1e400),
    *(float("nan"), float("-inf"), True, False, "", "auto", "\n\x1b[2J", "\ud800", [], [[]], {}),
    *(["full_attention"] * 3, ["x", 3, None], {"rope_type": "yarn"}, {"rope_type": []}),
    *({"rope_type": "linear", "factor": 10**400}, {"rope_theta": "1"}, {"full_attention": 3}),
    *({"": {}}, [1] * 1000, "x" * 10_000),
)


def _some(kind):
    """By default a family of each manner of reading; the others among the slow tests."""
    few = "llama4 smollm3 gemma3_text granitemoehybrid gpt_neo recurrent_gemma jamba qwen2 bloom t5"
    marks = () if kind in few.split() else (pytest.mark.slow,)
    return pytest.param(kind, marks=marks)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", [_some(kind) for kind in sorted(families())])
def test_every_key_with_every_wrong_value(kind, tmp_path):
    """Read from JSON, as a file says it: refused in one line with the key, or described."""
    asked, place, refused = set(), tmp_path / "model", 0

    def read(values):
        text = json.dumps({"model_type": kind, **values}, default=str)
        config = parsed("model", "config.json", text.encode())
        table = Asked(config.values, asked)
        tables = np.zeros((32, {"t5": 8}.get(kind, 6)))
        return described(kind, Config("model", table), lambda name: tables)

    with contextlib.suppress(InputError):
        read({})
    for key in sorted(asked - {"model_type"}):
        for value in HOSTILE:
            try:
                read({key: value})
            except InputError as error:
                said = str(error)
                assert "\n" not in said and said.isprintable() and len(said) < 400, said
                assert "config.json" in said, said
                refused += 1
    assert refused > 20 and not place.exists()


@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [
        (kind, key, value)
        for kind, layers in (("llama", "num_hidden_layers"), ("bloom", "n_layer"))
        for key in (layers, "hidden_size", "vocab_size")
        for value in (10**6, 10**18, 10**400)
        if (key, value) != ("vocab_size", 10**6)
    ]
    + [("mistral", key, 10**400) for key in ("rope_theta", "sliding_window", "head_dim")]
    + [("mistral", "rope_theta", float("nan")), ("t5", "relative_attention_max_distance", 10**6)],
)
def test_the_verb_refuses_what_is_beyond_every_model(kind, key, value, tmp_path, capsys):
    place = folder(tmp_path, **{"model_type": kind, key: value})
    if key == "hidden_size" and value == 10**6:
        return  # below the limit of a width, and quickly read
    with pytest.raises(SystemExit) as stop:
        main(["audit", str(place), "--out", str(tmp_path / "out")])
    said = capsys.readouterr().err
    assert stop.value.code == 2 and len(said.splitlines()) == 1
    assert "config.json" in said and key in said


def test_the_largest_model_is_audited(tmp_path):
    """Every size at its limit, windows and positions far beyond every model."""
    place = folder(
        tmp_path,
        model_type="mistral",
        num_hidden_layers=2000,
        num_attention_heads=1024,
        hidden_size=1 << 20,
        max_position_embeddings=1 << 40,
        sliding_window=1 << 40,
    )
    found = audit(place)
    assert len(found.reach) == 2000 and found.reach[-1] == 1 + 2000 * ((1 << 40) - 1)
    opened(place, "config.json").close()


PLACES = (
    ("configuration", "preset", "layers"),
    ("configuration", "preset", "heads"),
    ("configuration", "encoding", "mechanism"),
    ("configuration", "encoding", "heads", 0),
    ("configuration", "encoding", "parameters", 0, "name"),
    ("configuration", "encoding", "parameters"),
    ("labels", "encoding"),
    ("learned", "r1", 0),
)


def test_records_of_runs(text, small, tmp_path):
    """A record whose seal fits what somebody wrote into it."""
    settings = Configuration(encoding("kerple_log"), text, small)
    place = tmp_path / train_and_measure(settings, Store(tmp_path / "runs"))["key"]
    place.mkdir()
    record = read_json(tmp_path / "runs" / place.name / "training.json")
    refused = 0
    for *path, last in PLACES:
        for value in (-1, 0, 10**18, 1e308, "", "x" * 10_000, [], {}, None, [[3]]):
            changed = copy.deepcopy(record)
            at = changed
            for key in path:
                at = at[key]
            at[last] = value
            write_json(place / "training.json", changed)
            try:
                audit(place)
            except InputError as error:
                said = str(error)
                assert "\n" not in said and len(said) < 400 and said.isprintable()
                refused += 1
    assert refused > 50


@pytest.mark.parametrize("kind", [10**400, -(10**400), ["llama"], {}, True])
def test_a_type_that_is_no_name(kind, tmp_path):
    sizes = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 8, "vocab_size": 9}
    place = folder(tmp_path, rope_theta=1e4, **sizes | {"model_type": kind})
    one_line(lambda: describe(place), "config.json names no model_type")


REFUSED = {
    "hidden_act": ("nope", None),
    "rms_norm_eps": ("x", None),
    "intermediate_size": (-3, "x"),
    "attention_dropout": ("x",),
    "pad_token_id": (10**9, "x"),
    "quantization_config": ({"quant_method": "gptq", "bits": 4}, "x"),
    "rope_parameters": ({"rope_type": "yarn", "factor": 4.0, "beta_fast": "x"},),
}


@pytest.mark.parametrize("key", REFUSED)
def test_the_key_that_the_library_refuses(key, tmp_path):
    for value in REFUSED[key]:
        place = tmp_path / str(REFUSED[key].index(value))
        place.mkdir()
        given = {k: v for k, v in TINY["llama"].items() if k != "rope_theta"} | {key: value}
        (place / "config.json").write_text(json.dumps({"model_type": "llama", **given}))
        save_file({"x": np.zeros(2)}, place / "model.safetensors")
        one_line(lambda: load(describe(place)), f"config.json has {key}", "; accepted: ")  # noqa: B023


def test_a_model_that_fails_as_it_runs(tmp_path):
    """More experts a token than there are: the library sees that in its forward pass alone."""
    config = settings("mixtral", num_experts_per_tok=99)
    network(config).save_pretrained(tmp_path)
    one_line(lambda: load(describe(tmp_path)), "stops with RuntimeError", "; accepted: ")


@pytest.mark.parametrize("kind", ["bert", "modernbert", "mamba", "unheard of"])
def test_no_window_is_named_where_nothing_is_claimed(kind, tmp_path, speaks):
    sizes = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 8, "vocab_size": 9}
    place = folder(tmp_path, **sizes | {"model_type": kind, "auto_map": {"AutoConfig": "x.Y"}})
    said = speaks(model_window(place, "1/10"))
    assert "no positional claim is made" in said and "sliding_window" not in said
