"""out[0] = sum of X."""


def reference(xp, sizes, X):
    """Works on arrays of any array API namespace; inputs are float64."""
    return {"out": xp.reshape(xp.sum(X), (1,))}
