"""Methods as scikit-learn estimators with `fit(X, Y)`, `predict_proba(X)` and `confidences_`.

`METHODS` names every one; nothing is imported before `make_method` or a class is asked for.
"""

from importlib import import_module
from typing import Any, NamedTuple

from core.errors import PlainError


class Method(NamedTuple):
    """Where an estimator is, and the settings that make it this method."""

    module: str
    name: str
    settings: dict[str, Any]


def _method(place: str, **settings: Any) -> Method:
    module, _, name = place.partition(":")
    return Method(f"core.methods.{module}", name, settings)


METHODS: dict[str, Method] = {
    "studio": _method("plain:PlainClassifier", preset="studio"),
    "plain": _method("plain:PlainClassifier", preset="paper"),
    "pml-ni": _method("pml_ni:PMLNI"),
    "ml-knn": _method("ml_knn:MLKNN"),
    "glocal": _method("glocal:GLOCAL"),
    "particle": _method("particle:PARTICLE"),
    "particle-map": _method("particle:PARTICLE", variant="map"),
    "hale-style": _method("hale:HALEStyle"),
    "pml-lc-style": _method("pml_lc:PMLLCStyle"),
    "pml-fp-style": _method("pml_fp:PMLFPStyle"),
    "apml-style": _method("apml:APMLStyle"),
    "pml-mt-style": _method("pml_mt:PMLMTStyle"),
    "pml-md": _method("pml_md:PMLMD"),
    "schirn": _method("schirn:Schirn"),
    "comes-hl": _method("comes:COMESHL"),
    "propml": _method("propml:ProPML"),
    "network": _method("plain:PlainClassifier", preset="paper", disambiguation="none"),
    "kernel-ridge": _method("kernel_ridge:CandidateKernelRidge"),
    "cleanlab": _method("cleanlab_scores:CleanlabScores"),
    "cleanlab-network": _method("cleanlab_scores:CleanlabScores", model="network"),
    "label-frequency": _method("label_frequency:LabelFrequency"),
}
"""By the name a user types. Those called -style are as far as they are known."""

OF_RUNS: dict[str, Method] = {"consensus": _method("consensus:Consensus")}
"""Methods that learn from other runs: there is nothing to fit without them."""

USES_TORCH = frozenset(
    {"studio", "plain", "network", "apml-style", "pml-mt-style", "comes-hl", "propml"}
    | {"kernel-ridge", "cleanlab-network"}
)
"""Methods that load the engine; the others run without it."""

NEEDS_VERIFIED = frozenset({"pml-md"})
"""Methods whose `fit` needs rows with known truth: `verified`, (n, L), NaN elsewhere."""


def make_method(name: str, **settings: Any) -> Any:
    """Return the estimator of that name with some of its settings replaced."""
    if name not in METHODS and name not in OF_RUNS:
        known = ", ".join(METHODS)
        raise PlainError("No such method.", f"Got {name!r}.", f"Methods: {known}.")
    module, of, own = (METHODS | OF_RUNS)[name]
    return getattr(import_module(module), of)(**{**own, **settings})


def __getattr__(name: str) -> Any:
    for module, of, _ in METHODS.values():
        if of == name:
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
