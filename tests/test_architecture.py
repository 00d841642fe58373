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


@pytest.mark.parametrize("path", sorted((ROOT / "core").rglob("*.py")), ids=str)
def test_core_never_imports_the_front_end(path):
    roots = {name.split(".")[0] for name in imports(path)}
    assert not roots & {"streamlit", "plotly", "plain_app"}


@pytest.mark.parametrize("path", sorted((ROOT / "plain_app").rglob("*.py")), ids=str)
def test_the_front_end_never_touches_torch_faiss_or_sql(path):
    roots = {name.split(".")[0] for name in imports(path)}
    assert not roots & {"torch", "faiss", "sqlite3", "sqlalchemy", "umap"}


@pytest.mark.parametrize(
    "path",
    [path for part in ("core", "plain_app") for path in sorted((ROOT / part).rglob("*.py"))],
    ids=str,
)
def test_nothing_is_unpickled(path):
    assert not {name.split(".")[0] for name in imports(path)} & {"pickle", "joblib", "dill"}
    assert "allow_pickle=True" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "module",
    [
        "core",
        "core.config",
        "core.events",
        "core.dataset",
        "core.graphs",
        "core.cli",
        "core.store",
        "core.lens",
        "core.tuning",
        "core.review.load",
    ],
)
def test_importing_the_light_parts_loads_neither_torch_nor_faiss(module):
    code = f"import sys, {module}; print(sorted({{'torch', 'faiss'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_faiss_and_torch_live_in_one_process():
    """Each brings an OpenMP runtime; both orders must compute, not crash."""
    use = "X = torch.rand(50, 8); faiss.knn(X.numpy(), X.numpy(), 3); X @ X.T"
    for order in ("torch, faiss", "faiss, torch"):
        done = subprocess.run([sys.executable, "-c", f"import {order}; {use}"], check=False)
        assert done.returncode == 0
