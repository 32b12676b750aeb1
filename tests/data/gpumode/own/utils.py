"""Comparisons of the tests' own, with the names that GPU MODE's references import. Work on torch and on numpy."""


def _wide(array):
    return array.double() if hasattr(array, "double") else array.astype("float64")


def verbose_allclose(got, expected, rtol=1e-5, atol=1e-8):
    """What differs, in words; empty when nothing does."""
    if tuple(got.shape) != tuple(expected.shape):
        return f"shape {tuple(got.shape)} instead of {tuple(expected.shape)}"
    wrong = ~(abs(_wide(got) - _wide(expected)) <= atol + rtol * abs(_wide(expected)))
    return f"{int(wrong.sum())} elements are wrong" if bool(wrong.any()) else ""


def verbose_allequal(got, expected):
    """As above, for what has to be equal."""
    return verbose_allclose(got, expected, rtol=0.0, atol=0.0)


def make_match_reference(reference, rtol=1e-5, atol=1e-8):
    """A check that a result is the reference's: (good, message)."""

    def check(data, output):
        message = verbose_allclose(output, reference(data), rtol=rtol, atol=atol)
        return not message, message

    return check
