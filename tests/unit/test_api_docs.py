"""What docs/api.md and docs/method.md say is so: examples run, figures and settings are real."""

import inspect
import re
from pathlib import Path

import pytest

import core
from core.engine import graphs
from core.engine.config import PRESETS, PlainConfig
from core.engine.propagation import Propagator
from core.methods import PlainClassifier

DOCS = Path(__file__).parents[2] / "docs"
API, METHOD, BENCHMARKS, TABLES = (
    (DOCS / f"{name}.md").read_text(encoding="utf-8")
    for name in ("api", "method", "benchmarks", "method-tables")
)
BLOCKS = re.findall(r"```python\n(.*?)```", API, re.DOTALL)


def test_every_example_runs_and_gives_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    n_checked = 0
    for block in BLOCKS:
        for line in block.splitlines():
            code, _, said = line.partition("  # = ")
            if said:
                assert repr(eval(code, names)) == said, code
                n_checked += 1
            else:
                exec(code, names)
    assert n_checked >= len(BLOCKS)


@pytest.mark.parametrize("name", core.__all__)
def test_every_public_name_is_in_the_api_page(name):
    assert f"`{name}" in API


def test_signatures_in_the_api_page_are_real():
    for function in ("build_instance_graph", "build_label_graph", "read_instance_graph"):
        said = re.search(rf"`{function}\((.*?)\)`", API).group(1)
        real = inspect.signature(getattr(graphs, function)).parameters
        assert [one.split("=")[0] for one in said.split(", ")] == list(real)[: said.count(",") + 1]
    said = re.search(r"`Propagator\((.*?)\)`", API).group(1)
    assert {one.split("=")[0] for one in said.split(", ")} == set(
        inspect.signature(Propagator).parameters
    )
    for name in re.findall(r"`(\w+_)` \|", API):
        assert name in PlainClassifier.__doc__, name


def test_presets_in_the_method_page_are_those_in_force():
    rows = re.findall(r"^\| `(\w+)` \| (\S+) \| (\S+) \|", METHOD, re.MULTILINE)
    settings = PlainConfig.model_fields
    said = {name: (paper, studio) for name, paper, studio in rows if name in settings}
    paper, studio = (PlainConfig.preset(name) for name in ("paper", "studio"))
    differ = [name for name in PRESETS["studio"] if getattr(paper, name) != getattr(studio, name)]
    assert sorted(said) == sorted(differ)
    for name, values in said.items():
        real = tuple(str(getattr(one, name)).lower() for one in (paper, studio))
        assert tuple(one.lower() for one in values) == real, name


def test_every_figure_of_the_method_page_is_one_of_the_benchmarks():
    figures = set(re.findall(r"(?<![\w.])-?0?\.\d{3}\b", METHOD)) - {"0.001"}
    assert len(figures) > 50
    measured = set(re.findall(r"-?0?\.\d{3}(?!\d)", BENCHMARKS + TABLES))
    without_zero = {one.replace("0.", ".") for one in measured}
    assert {one for one in figures if one.replace("0.", ".") not in without_zero} == set()


@pytest.mark.parametrize("name", ["plain", "network", "studio"])
def test_average_precision_in_the_method_page_is_that_of_the_tables(name):
    columns = re.search(r"^\| \|((?: \S+ \|)+)\n.*\n\| `plain`", METHOD, re.MULTILINE).group(1)
    said = re.search(rf"^\| `{name}`[^|]*\|(.*)\|$", METHOD, re.MULTILINE).group(1).split("|")
    for data, value in zip(columns.split("|"), said, strict=False):
        if not data.strip():
            continue
        title = rf"\*\*{data.strip()}, (r = 3|own candidates): mean.*?"
        row = rf"^\| {name} \| \S+ \| ([\d.]+)±"
        found = re.search(title + row, TABLES, re.DOTALL | re.MULTILINE)
        assert found.group(2) == value.strip(), data
