"""ARFF and svmlight."""

from pathlib import Path

from bombs.registry import bomb


@bomb("a.arff")
def arff_million_attributes(path: Path) -> None:
    path.write_text(
        "@relation 'a: -C 1'\n" + "@attribute a{0,1}\n" * 550_000 + "@data\n" + "{0 1}\n" * 3
    )


@bomb("a.arff")
def arff_different_attributes(path: Path) -> None:
    attributes = "".join(f"@attribute a{j} real\n" for j in range(450_000))
    path.write_text("@relation 'a: -C 1'\n" + attributes + "@data\n" + "{0 1, 5 2}\n" * 50)


@bomb("a.arff")
def arff_text_attributes(path: Path) -> None:
    """A text of its own for each attribute and row, though no row writes any."""
    attributes = "".join(f"@attribute a{j} string\n" for j in range(100_000))
    head = "@relation 'a: -C 1'\n@attribute l {0,1}\n" + attributes + "@data\n"
    path.write_text(head + "{0 1}\n" * 1_000_000)


@bomb("a.arff")
def arff_nominal_values(path: Path) -> None:
    values = ",".join(f"v{i}" for i in range(300_000))
    path.write_text(
        f"@relation 'a: -C 1'\n@attribute l {{0,1}}\n@attribute a {{{values}}}\n@data\n"
        + "1,v1\n" * 500_000
    )


@bomb("a.arff")
def arff_many_nominals(path: Path) -> None:
    attributes = "".join(f"@attribute a{j} {{x,y,z}}\n" for j in range(100_000))
    head = "@relation 'a: -C 1'\n@attribute l {0,1}\n" + attributes + "@data\n"
    path.write_text(head + "{0 1}\n" * 500_000)


@bomb("a.arff")
def arff_many_labels(path: Path) -> None:
    attributes = "".join(f"@attribute a{j} {{0,1}}\n" for j in range(99_999))
    head = "@relation 'a: -C 99998'\n" + attributes + "@data\n"
    path.write_text(head + "{0 1}\n" * 10_000)


@bomb("a.arff")
def arff_open_quotes(path: Path) -> None:
    path.write_text("@relation 'a: -C 1'\n@attribute a {0,1}\n@data\n" + "'" + "\\'" * 5_000_000)


@bomb("a.arff")
def arff_spaces(path: Path) -> None:
    path.write_text("@attribute a" + " " * 9_000_000 + "x\n@data\n1\n")


@bomb("a.arff")
def arff_nominal_spaces(path: Path) -> None:
    path.write_text("@attribute a {0" + ", 1" * 3_000_000 + "\n@data\n1\n")


@bomb("a.arff")
def arff_quoted_tokens(path: Path) -> None:
    path.write_text("@relation 'a: -C 1'\n@attribute a {0,1}\n@data\n" + "'1'," * 2_500_000)


@bomb("a.arff")
def arff_bad_rows(path: Path) -> None:
    head = "@relation 'a: -C 1'\n@attribute a {0,1}\n@attribute b real\n@data\n"
    path.write_text(head + "x,y\n" * 2_500_000)


@bomb("a.arff")
def arff_entities(path: Path) -> None:
    path.write_text("@relation a\n@attribute a {0,1}\n@attribute b real\n@data\n" + "1,1\n" * 5)
    entities = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 20))
    path.with_suffix(".xml").write_text(
        f'<!DOCTYPE labels [<!ENTITY a0 "a">{entities}]><labels><label name="&a19;"/></labels>'
    )


@bomb("a.arff")
def arff_deep_xml(path: Path) -> None:
    path.write_text("@relation a\n@attribute a {0,1}\n@attribute b real\n@data\n" + "1,1\n" * 5)
    path.with_suffix(".xml").write_text("<a>" * 2_000_000)


@bomb("a.svm")
def svmlight_index(path: Path) -> None:
    path.write_text("0 2147483648:1\n1 1:1\n0 1:2\n")


@bomb("a.svm")
def svmlight_label(path: Path) -> None:
    path.write_text("0 1:1\n2147483648 1:1\n1 1:2\n")


@bomb("a.svm")
def svmlight_many_labels(path: Path) -> None:
    path.write_text("99999 1:1\n" * 10_700)


@bomb("a.svm")
def svmlight_wide(path: Path) -> None:
    path.write_text("0 999999:1\n1 1:1\n" * 500_000)


@bomb("a.svm")
def svmlight_label_sets(path: Path) -> None:
    path.write_text(("0," * 2_000_000 + "0 1:1\n") * 2 + "1 2:1\n")


@bomb("a.svm")
def svmlight_dense_rows(path: Path) -> None:
    row = " ".join(f"{j}:1" for j in range(1, 900))
    path.write_text(f"0 {row}\n1 {row}\n" * 1_000)


@bomb("a.svm")
def svmlight_bad_pairs(path: Path) -> None:
    path.write_text("0 1:1\n1 1:1\n" + "0 a:b c:d e:f\n" * 700_000)


@bomb("a.svm")
def svmlight_is_dense(path: Path) -> None:
    """The side file says that zeros shall be stored."""
    path.write_text("0 1:1\n1 5:1\n" * 500_000)
    path.with_name("a.names.json").write_text('{"n_features": 900000, "is_dense": true}')
