"""The rules that keep the parts apart, checked on the real import graph."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def imports(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


def strings(path: Path) -> list[str]:
    """Return the string constants of a module, without what documents."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return [
        one.value for one in constants if isinstance(one.value, str) and id(one) not in documents
    ]


@pytest.mark.parametrize("path", sorted((ROOT / "core").rglob("*.py")), ids=str)
def test_core_never_reaches_the_front_end(path):
    roots = {name.split(".")[0] for name in imports(path)}
    assert not roots & {"streamlit", "plotly", "plain_app"}
    assert not [one for one in strings(path) if one.startswith(("plain_app", "streamlit"))]


@pytest.mark.parametrize("path", sorted((ROOT / "plain_app").rglob("*.py")), ids=str)
def test_the_front_end_uses_the_documented_part_of_its_libraries(path):
    private = ("streamlit.runtime", "streamlit.proto", "streamlit.web", "uvicorn", "torch.optim.")
    assert not [name for name in imports(path) if name.startswith(private)]


@pytest.mark.parametrize("path", sorted((ROOT / "plain_app").rglob("*.py")), ids=str)
def test_the_front_end_never_touches_torch_faiss_or_sql(path):
    roots = {name.split(".")[0] for name in imports(path)}
    assert not roots & {"torch", "faiss", "sqlite3", "sqlalchemy", "umap"}


@pytest.mark.parametrize("path", sorted((ROOT / "plain_app").rglob("*.py")), ids=str)
def test_a_page_uses_no_other_page_and_what_they_share_uses_none(path):
    room, *rest = path.relative_to(ROOT / "plain_app").parts
    own = f"plain_app.views.{rest[0]}." if room == "views" else "no page"
    if room == "bench":
        return  # draws pages to time them
    pages = [one for one in imports(path) if one.startswith("plain_app.views.")]
    assert [one for one in pages if not one.startswith(own)] == []
    assert room != "charts" or "streamlit" not in imports(path)


@pytest.mark.parametrize(
    "path",
    [
        path
        for part in ("core", "plain_app", "tests")
        for path in sorted((ROOT / part).rglob("*.py"))
    ],
    ids=str,
)
def test_files_and_functions_are_short(path):
    text = path.read_text(encoding="utf-8")
    nodes = ast.walk(ast.parse(text))
    functions = [one for one in nodes if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    # What a command of the command line declares are its options: only what it does counts.
    is_cli = path.is_relative_to(ROOT / "core" / "cli")
    assert len(text.splitlines()) <= 400
    for one in functions:
        assert one.end_lineno - (one.body[0] if is_cli else one).lineno < 50, one.name


@pytest.mark.parametrize("path", sorted((ROOT / "plain_app").rglob("*.py")), ids=str)
def test_what_is_drawn_is_described(path):
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    drawn = {"dataframe", "data_editor", "echarts_chart", "plotly_chart", "image"}
    for call in (one for one in nodes if isinstance(one, ast.Call)):
        if isinstance(call.func, ast.Attribute) and call.func.attr in drawn:
            assert {"alt", None} & {one.arg for one in call.keywords}, call.lineno


def test_a_popover_that_closes_asks_for_no_rerun():
    """A click on a link would close it, and the rerun overtake the change of page."""
    for path in (ROOT / "plain_app").rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
                names = {one.arg for one in call.keywords}
                assert call.func.attr != "popover" or not names & {"on_change", None}, path


@pytest.mark.parametrize(
    "path",
    [path for part in ("core", "plain_app") for path in sorted((ROOT / part).rglob("*.py"))],
    ids=str,
)
def test_nothing_is_unpickled(path):
    assert not {name.split(".")[0] for name in imports(path)} & {"pickle", "joblib", "dill"}
    assert "allow_pickle=True" not in path.read_text(encoding="utf-8")


LIGHT = (
    *(
        "core",
        "core.engine.config",
        "core.engine.events",
        "core.data.dataset",
        "core.engine.graphs",
    ),
    *("core.cli", "core.store", "core.confidence.lens", "core.tuning", "core.methods"),
    *("core.review.load", "plain_app.services.data", "plain_app.services.runs"),
    *("plain_app.services.histories", "plain_app.services.desk", "plain_app.views.explore.map"),
)


def test_importing_the_light_parts_loads_neither_torch_nor_faiss():
    code = f"""if True:
        import importlib, sys
        for name in {LIGHT}:
            importlib.import_module(name)
            assert not {{"torch", "faiss"}} & set(sys.modules), name
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_public_names_are_there_and_loaded_when_used():
    import core

    assert {"PlainClassifier", "PlainConfig", "CandidateDataset", "read"} <= set(dir(core))
    for name in core.__all__:
        assert getattr(core, name).__name__ == name
    with pytest.raises(AttributeError, match="nothing"):
        core.nothing  # noqa: B018


def test_faiss_and_torch_live_in_one_process():
    """Each brings an OpenMP runtime; both orders must compute, not crash."""
    use = "X = torch.rand(50, 8); faiss.knn(X.numpy(), X.numpy(), 3); X @ X.T"
    for order in ("torch, faiss", "faiss, torch"):
        done = subprocess.run([sys.executable, "-c", f"import {order}; {use}"], check=False)
        assert done.returncode == 0
