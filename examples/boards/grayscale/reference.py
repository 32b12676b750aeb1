"""Grey values of an image."""


def reference(xp, sizes, rgb):
    """Works on arrays of any array API namespace; inputs are float64."""
    return {"grey": 0.2989 * rgb[:, :, 0] + 0.5870 * rgb[:, :, 1] + 0.1140 * rgb[:, :, 2]}
