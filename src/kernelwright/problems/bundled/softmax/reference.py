"""Softmax over the last axis."""


def reference(xp, sizes, X):
    """Works on arrays of any array API namespace; inputs are float64."""
    shifted = xp.exp(X - xp.max(X, axis=-1, keepdims=True))
    return {"Y": shifted / xp.sum(shifted, axis=-1, keepdims=True)}
