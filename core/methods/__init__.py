"""Methods as scikit-learn estimators with `fit(X, Y)`, `predict_proba(X)` and `confidences_`."""

from core.methods.plain import PlainClassifier

__all__ = ["PlainClassifier"]
