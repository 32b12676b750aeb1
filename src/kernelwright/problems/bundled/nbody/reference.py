"""Gravitational acceleration of all pairs."""

PAIRS_AT_ONCE = 2**24


def reference(xp, sizes, bodies, softening):
    """Works on arrays of any array API namespace; inputs are float64.

    Differences first, then squares: sum_j w_ij p_j - (sum_j w_ij) p_i would be a matrix product, but loses what
    matters to cancellation when positions are large and the softening is small.
    """
    n = sizes["N"]
    place, mass = bodies[:, :3], bodies[:, 3]
    chunk = max(1, PAIRS_AT_ONCE // n)
    rows = []
    for start in range(0, n, chunk):
        mine = place[start : min(start + chunk, n), :]
        apart = [place[None, :, axis] - mine[:, None, axis] for axis in range(3)]
        square = apart[0] * apart[0] + apart[1] * apart[1] + apart[2] * apart[2] + softening
        weight = mass[None, :] / (square * xp.sqrt(square))
        rows.append(xp.stack([xp.sum(weight * each, axis=1) for each in apart], axis=1))
    acceleration = xp.concat(rows, axis=0)
    return {"acceleration": xp.concat([acceleration, xp.zeros_like(acceleration[:, :1])], axis=1)}
