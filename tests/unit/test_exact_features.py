"""Formats without columns of text give numbers out as precise as they came, not as float32."""

import json
from contextlib import closing
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp

from core.formats import read, write
from core.store import Workspace

LARGE = 9_007_199_254_740_901
X = np.array([[1_700_000_074, 0.1, 0], [1_700_000_075, 1 / 3, 2], [LARGE, 0, 1e-9], [0, 1, 3]])
Y = np.array([[1, 0], [0, 1], [1, 1], [1, 0]], np.uint8)


def arff(path):
    lines = [",".join([*map(repr, x), *map(str, y)]) for x, y in zip(X.tolist(), Y, strict=True)]
    names = "".join(f"@attribute {name} numeric\n" for name in "abc")
    labels = "".join(f"@attribute {name} {{0,1}}\n" for name in ("sea", "sky"))
    path.write_text(f"@relation 'x: -C -2'\n{names}{labels}@data\n" + "\n".join(lines) + "\n")


def arff_sparse(path):
    cells = [[*x, *y] for x, y in zip(X.tolist(), Y.tolist(), strict=True)]
    lines = ["{" + ",".join(f"{j} {c!r}" for j, c in enumerate(row) if c) + "}" for row in cells]
    names = "".join(f"@attribute {name} numeric\n" for name in "abc")
    labels = "".join(f"@attribute {name} {{0,1}}\n" for name in ("sea", "sky"))
    path.write_text(f"@relation 'x: -C -2'\n{names}{labels}@data\n" + "\n".join(lines) + "\n")


def npz(path):
    np.savez(path, X=X, Yp=Y)


def npz_integers(path):
    np.savez(path, X=X.astype(np.int64), Yp=Y)


def npz_sparse(path):
    csr = sp.csr_array(X)
    parts = {"X_data": csr.data, "X_indices": csr.indices, "X_indptr": csr.indptr}
    np.savez(path, **parts, X_shape=np.array(csr.shape), Yp=Y)


def mat(path):
    scipy.io.savemat(path, {"data": X, "partial_labels": Y.T})


def svm(path):
    sets = [",".join(str(j) for j in np.flatnonzero(y)) for y in Y]
    rows = [" ".join(f"{j + 1}:{v!r}" for j, v in enumerate(x) if v) for x in X.tolist()]
    path.write_text("".join(f"{one} {row}\n" for one, row in zip(sets, rows, strict=True)))


def columns():
    table = {f"feature_{name}": X[:, j] for j, name in enumerate("abc")}
    return pd.DataFrame(table | {"label_sea": Y[:, 0], "label_sky": Y[:, 1]})


def csv(path):
    columns().to_csv(path, index=False)


def csv_with_decimal_commas(path):
    columns().to_csv(path, index=False, sep=";", decimal=",")


def csv_sparse(path):
    wide = np.zeros((len(X), 120))
    wide[:, :3] = X
    table = pd.DataFrame(wide, columns=[f"feature_{j}" for j in range(120)])
    table.assign(label_sea=Y[:, 0], label_sky=Y[:, 1]).to_csv(path, index=False)


def csv_list(path):
    lists = [json.dumps(row) for row in X.tolist()]
    pd.DataFrame({"embedding": lists, "label_sea": Y[:, 0], "label_sky": Y[:, 1]}).to_csv(path)


def jsonl_list(path):
    rows = [
        {"embedding": x, "label_sea": int(y[0]), "label_sky": int(y[1])}
        for x, y in zip(X.tolist(), Y, strict=True)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def parquet(path):
    columns().to_parquet(path, index=False)


def views(path):
    table = columns().assign(id=["a", "b", "c", "d"])
    both = pd.concat([table.assign(rater="r1"), table.assign(rater="r2")])
    both.to_csv(path, index=False)


def single_labels(path):
    rows = [
        {"id": f"i{i}", **{f"feature_{n}": X[i, j] for j, n in enumerate("abc")}, "label": name}
        for i in range(len(X))
        for name, offered in zip(("sea", "sky"), Y[i], strict=True)
        for _ in range(2 * offered)
    ]
    pd.DataFrame(rows).assign(value=1).to_csv(path, index=False)


FILES = {
    "a.arff": arff,
    "sparse.arff": arff_sparse,
    "a.npz": npz,
    "integers.npz": npz_integers,
    "sparse.npz": npz_sparse,
    "a.mat": mat,
    "a.svm": svm,
    "a.csv": csv,
    "commas.csv": csv_with_decimal_commas,
    "sparse.csv": csv_sparse,
    "list.csv": csv_list,
    "list.jsonl": jsonl_list,
    "a.parquet": parquet,
    "views.csv": views,
    "single_labels.csv": single_labels,
}


def exact(path):
    return np.asarray(sp.csr_array(read(path).dataset.original.features()).toarray())


@pytest.mark.parametrize("kind", ["arff", "npz", "mat", "svm"])
@pytest.mark.parametrize("name", FILES)
def test_numbers_go_out_as_precise_as_they_came(name, kind, tmp_path):
    FILES[name](tmp_path / name)
    with closing(Workspace(tmp_path / "space")) as space:
        fingerprint = space.add_dataset(read(tmp_path / name).dataset, name)
        (tmp_path / name).unlink()  # the workspace has its own copy
        write(space.load_dataset(fingerprint), tmp_path / f"out.{kind}")
    expected = X.astype(np.int64) if name == "integers.npz" else X
    found = exact(tmp_path / f"out.{kind}")
    np.testing.assert_array_equal(found[:, :3], expected)
    assert not found[:, 3:].any()


def test_features_that_are_not_those_of_the_file_go_out_as_they_are(tmp_path):
    npz(tmp_path / "a.npz")
    dataset = read(tmp_path / "a.npz").dataset
    changed = replace(dataset, features=dataset.features[:, ::-1].copy())
    write(changed, tmp_path / "out.npz")
    np.testing.assert_array_equal(read(tmp_path / "out.npz").dataset.features, changed.features)
