"""Mulan and MEKA ARFF: what attributes mean, exact round trips, refusals by row and column."""

import re
from pathlib import Path
from xml.etree import ElementTree

import format_cases as cases
import fuzzing_binary
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings

from core import formats
from core.data.dataset import CandidateDataset
from core.errors import DatasetError
from core.formats.readers import arff
from core.formats.shared.mapping import ColumnMapping

MULAN = """% a comment
@relation emotions
@attribute 'Mean Acc' numeric
@attribute sad {0,1}
@attribute site {north,south,'far east'}
@attribute note string
@attribute happy {1,0}
@data
1.5,0,north,'it\\'s',1
-2,1,'far east',"a \\"b\\", c",0
0,1,south,plain,1
0,1,south,plain,1
"""
XML = """<?xml version="1.0"?><labels xmlns="http://mulan.sourceforge.net/labels">
<label name="happy"><label name="sad"/></label></labels>"""


def mulan(folder: Path, text: str, xml: str | None = XML) -> Path:
    path = folder / "data.arff"
    path.write_text(text, "utf-8")
    if xml is not None:
        path.with_suffix(".xml").write_text(xml, "utf-8")
    return path


def test_mulan_labels_are_those_the_xml_names_in_attribute_order(tmp_path: Path) -> None:
    result = arff.read(mulan(tmp_path, MULAN))
    data = result.dataset
    assert data.label_names == ("sad", "happy")
    np.testing.assert_array_equal(data.candidates, [[0, 1], [1, 0], [1, 1], [1, 1]])
    assert data.feature_names == ("Mean Acc", "site=north", "site=south", "site=far east")
    np.testing.assert_array_equal(data.features[1], [-2, 0, 0, 1])
    assert data.display is not None
    assert data.display["note"].tolist() == ["it's", 'a "b", c', "plain", "plain"]
    assert any("one per value" in problem.message for problem in result.problems)


@pytest.mark.parametrize(("count", "labels"), [(2, ("a", "b")), (-2, ("c", "d"))])
def test_meka_sign_tells_first_from_last(tmp_path: Path, count: int, labels: tuple[str]) -> None:
    header = "".join(f"@attribute {name} {{0,1}}\n" for name in "abcd")
    text = f"@relation 'Music: -C {count}'\n{header}@data\n1,0,0,1\n0,1,1,0\n1,1,0,0\n"
    data = arff.read(mulan(tmp_path, text, xml=None)).dataset
    assert data.label_names == labels
    np.testing.assert_array_equal(data.candidates[0], [1, 0] if count > 0 else [0, 1])


def test_value_left_out_of_a_sparse_row_is_the_first_declared_one(tmp_path: Path) -> None:
    text = (
        "@relation 'x: -C 1'\n@attribute a {1,0}\n@attribute w {5,0,2}\n@attribute v real\n"
        "@data\n{}\n{0 0, 2 0.5}\n{1 2}\n"
    )
    data = arff.read(mulan(tmp_path, text, xml=None)).dataset
    np.testing.assert_array_equal(data.candidates[:, 0], [1, 0, 1])
    np.testing.assert_array_equal(data.features.toarray(), [[5, 0], [5, 0.5], [2, 0]])


def test_nominal_values_become_numbers_where_they_mean_one(tmp_path: Path) -> None:
    header = "@attribute l {0,1}\n@attribute p {YES,NO}\n@attribute g {F,M}\n"
    header += "@attribute name {p1,p2,p3,p4}\n@attribute n {3,1}\n"
    rows = "1,YES,F,p2,3\n0,NO,M,p1,1\n1,YES,M,p4,1\n"
    path = mulan(tmp_path, f"@relation 'x: -C 1'\n{header}@data\n{rows}", xml=None)
    data = arff.read(path).dataset
    assert data.feature_names == ("p", "g=M", "n")
    np.testing.assert_array_equal(data.features, [[1, 0, 3], [0, 1, 1], [1, 1, 1]])
    assert data.display is not None
    assert data.display["name"].tolist() == ["p2", "p1", "p4"]


def test_parts_of_a_data_set_share_its_xml(tmp_path: Path) -> None:
    (tmp_path / "Music.xml").write_text('<labels><label name="b"/></labels>', "utf-8")
    path = tmp_path / "musicTrain-3.arff"
    path.write_text("@relation m\n@attribute a real\n@attribute b {0,1}\n@data\n1,1\n2,0\n3,1\n")
    assert arff.read(path).dataset.label_names == ("b",)


def test_wrong_values_are_all_named_at_once(tmp_path: Path) -> None:
    text = "@relation 'x: -C 1'\n@attribute a {0,1}\n@attribute w real\n@attribute s string\n"
    text += "@data\n?,1,?\n0,x,b\n2,1,b\n1,1\n"
    with pytest.raises(DatasetError) as caught:
        arff.read(mulan(tmp_path, text, xml=None))
    found = [(p.row, p.column, p.value) for p in caught.value.problems]
    assert found == [(7, "w", "x"), (8, "a", "2"), (9, None, "2")]


@pytest.mark.parametrize("is_sparse", [False, True])
def test_missing_nominal_values_are_told_and_never_another_value(
    tmp_path: Path, is_sparse: bool
) -> None:
    text = "@relation 'x: -C -2'\n@attribute colour {red,green,blue}\n@attribute wet {no,yes}\n"
    text += "@attribute side {left,right}\n@attribute size {2,3,4}\n"
    text += "@attribute a {1,0}\n@attribute b numeric\n@data\n"
    rows = [
        "green,yes,right,4,0,1",
        "?,?,?,?,?,?",
        "blue,no,left,2,1,0",
        "red,no,left,3,1,1",
        "red,no,left,3,0,1",
    ]
    if is_sparse:
        numbered = [enumerate(row.split(",")) for row in rows]
        rows = ["{" + ",".join(f"{j} {cell}" for j, cell in row) + "}" for row in numbered]
    read = arff.read(mulan(tmp_path, text + "\n".join(rows) + "\n", xml=None))
    features = cases.dense(read.dataset.features)
    one_hot = [[0, 1, 0], [0, 0, 0], [0, 0, 1], [1, 0, 0], [1, 0, 0]]
    means = [[1, 1, 4], [0.25, 0.25, 3], [0, 0, 2], [0, 0, 3], [0, 0, 3]]
    assert np.hstack([one_hot, means]).tolist() == features.tolist()
    assert read.dataset.candidates.tolist() == [[0, 1], [0, 0], [1, 0], [1, 1], [0, 1]]
    told = {one.column: one.message for one in read.problems if one.value == "1 missing"}
    assert told.keys() == {"colour", "wet", "side=right", "size", "a", "b"}
    assert "0 in every feature" in told["colour"]
    assert "not offered" in told["a"]
    assert "mean" in told["size"]


def test_file_without_named_labels_says_how_to_name_them(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"data\.xml beside the file"):
        arff.read(mulan(tmp_path, MULAN, xml=None))


def test_a_feature_named_like_a_label_gets_another_name(tmp_path: Path) -> None:
    names = ["a", "x", "feature_a"]
    data = CandidateDataset(np.eye(3), np.eye(3), ["a", "b", "c"], feature_names=names)
    formats.write(data, tmp_path / "data.arff")
    assert "@attribute feature_feature_a numeric" in (tmp_path / "data.arff").read_text("utf-8")
    assert formats.read(tmp_path / "data.arff").dataset.feature_names == tuple(names)


def test_names_stand_in_the_quotes_that_they_do_not_hold(tmp_path: Path) -> None:
    names = ("it's 100%", 'say "no"', "both ' and \"", "back\\slash", "plain")
    data = CandidateDataset(np.eye(5, dtype=np.float32), np.eye(5, dtype=np.uint8), names)
    path = formats.write(data, tmp_path / "a.arff")
    text = path.read_text("utf-8")
    for name in ('"it\'s 100%"', "'say \"no\"'"):  # liac-arff leaves backslashes in names
        assert f"@attribute {name} {{0,1}}" in text
    assert arff.read(path).dataset.label_names == names


def test_the_last_sparse_row_tells_how_many_attributes_there_are(tmp_path: Path) -> None:
    data = CandidateDataset(sp.eye_array(3, 4, dtype=np.float32), [[1, 0], [1, 0], [0, 0]])
    path = formats.write(data, tmp_path / "a.arff")
    assert path.read_text("utf-8").splitlines()[-1] == "{2 1,5 0}"
    np.testing.assert_array_equal(arff.read(path).dataset.candidates, data.candidates)


@pytest.mark.parametrize("sparse", [True, False])
def test_only_features_and_labels_are_attributes(tmp_path: Path, sparse: bool) -> None:
    data = cases.small_dataset(sparse)
    formats.write(data, tmp_path / "out.arff", resolution=cases.resolution_of(data))
    alone = arff.read(tmp_path / "out.arff").dataset
    assert alone.feature_names == data.feature_names
    assert alone.label_names == data.label_names
    np.testing.assert_array_equal(alone.candidates, cases.resolution_of(data).labels)
    result = formats.read(tmp_path / "out.arff")
    cases.assert_same(result.dataset, data)
    cases.assert_same_display(result.dataset, data)
    assert any("export" in problem.message for problem in result.problems)


@pytest.mark.parametrize("sparse", [True, False])
def test_mulan_and_meka_are_told_the_labels_by_their_rules(tmp_path: Path, sparse: bool) -> None:
    """Neither can be had from a registry: what their documents ask for.

    Mulan: `labels` of its name space, in it a `label` with a `name` for each, which are attributes
    of the values 0 and 1. MEKA: `-C -L` in the relation, the last L attributes being labels.
    """
    data = cases.small_dataset(sparse)
    formats.write(data, tmp_path / "out.arff", resolution=cases.resolution_of(data))
    labels = ElementTree.parse(tmp_path / "out.xml").getroot()
    space = "{http://mulan.sourceforge.net/labels}"
    assert labels.tag == f"{space}labels"
    assert {one.tag for one in labels} == {f"{space}label"}
    names = [one.attrib["name"] for one in labels]
    assert names == list(data.label_names)
    lines = (tmp_path / "out.arff").read_text("utf-8").splitlines()
    assert re.fullmatch(rf"@relation '[^']*: -C -{len(names)}'", lines[0])
    attributes = [line for line in lines if line.startswith("@attribute ")]
    assert len(attributes) == data.n_features + data.n_labels
    assert all(re.search(r" \{0, ?1\}$", line) for line in attributes[-len(names) :])
    assert all(line.endswith(" numeric") for line in attributes[: -len(names)])


@given(cases.datasets(controls=False))
@settings(max_examples=100, deadline=None)
def test_round_trip_is_exact(
    tmp_path_factory: pytest.TempPathFactory, data: CandidateDataset
) -> None:
    path = formats.write(data, tmp_path_factory.mktemp("arff") / "data.arff")
    read = formats.read(path).dataset
    cases.assert_same(read, data)
    assert read.feature_names == data.feature_names


@cases.each_shared_file
def test_shared_data_round_trip(tmp_path: Path, shared_file: Path) -> None:
    data = cases.shared(shared_file)
    path = formats.write(data, tmp_path / "data.arff")
    cases.assert_same(formats.read(path).dataset, data)


BOMB = (
    '<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "aaaaaaaaaa">'
    + "".join(f'<!ENTITY a{i} "{"&a" * 1}{i - 1 if i else ""};">' for i in range(5))
    + ']><labels><label name="&a4;"/></labels>'
)


@pytest.mark.parametrize(
    ("text", "xml"),
    [
        ("", None),
        ("@relation x\n@attribute a numeric\n", None),
        ("@relation x\n@attribute 'a numeric\n@data\n1\n", XML),
        ("@relation x\n@attribute a relational\n@data\n1\n", XML),
        (MULAN, BOMB),
        (MULAN, "<labels>"),
        (MULAN, "<labels><label/></labels>"),
        (MULAN, '<labels><label name="nobody"/></labels>'),
        ("@relation 'x: -C 5'\n@attribute a {0,1}\n@data\n1\n1\n0\n", None),
        ("@relation 'x: -C 1'\n@attribute a {0,1}\n@attribute a real\n@data\n1,1\n", None),
        ("@relation 'x: -C 1'\n@attribute a {0,1}\n@data\n{7 1}\n{0 1, 0 1}\n{0}\n{x 1}\n", None),
        ("@relation 'x: -C 1'\n@attribute a {red,blue}\n@data\nred\nblue\nred\n", None),
        ("@relation 'x: -C 1'\n@attribute a string\n@data\nred\nblue\nred\n", None),
    ],
)
def test_hostile_text_is_refused(tmp_path: Path, text: str, xml: str | None) -> None:
    with pytest.raises(DatasetError):
        arff.read(mulan(tmp_path, text, xml))


def test_a_million_attributes_are_refused(tmp_path: Path) -> None:
    text = "@relation x\n" + "@attribute a real\n" * 1_000_001 + "@data\n"
    with pytest.raises(DatasetError, match="at most"):
        arff.read(mulan(tmp_path, text, None))


def test_nominal_attribute_with_too_many_values_is_refused(tmp_path: Path) -> None:
    values = ",".join(f"v{i}" for i in range(60_000))
    text = f"@relation 'x: -C 1'\n@attribute a {{0,1}}\n@attribute b {{{values}}}\n@data\n"
    with pytest.raises(DatasetError, match="60,001 features"):
        arff.read(mulan(tmp_path, text + "1,v1\n" * 60_000, None))


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    assert set(fuzzing_binary.fuzz("arff", 60, tmp_path)) <= {"read", "refused"}


def test_mapping_names_the_labels_where_nothing_else_does(tmp_path: Path) -> None:
    path = mulan(tmp_path, MULAN, xml=None)
    assert arff.read(path, ColumnMapping(labels=("happy",))).dataset.label_names == ("happy",)
