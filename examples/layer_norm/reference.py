"""Layer normalisation in float64."""


def reference(xp, sizes, X, G, B):
    """Y for an array namespace ``xp``."""
    del sizes
    mean = xp.mean(X, axis=1, keepdims=True)
    variance = xp.mean((X - mean) ** 2, axis=1, keepdims=True)
    return {"Y": (X - mean) / xp.sqrt(variance + 1e-5) * G + B}
