"""Gravitational acceleration of all pairs."""

PAIRS_AT_ONCE = 2**24


def reference(xp, sizes, bodies, softening):
    """Works on arrays of any array API namespace; inputs are float64.

    sum_j w_ij (p_j - p_i) = (w p)_i - (sum_j w_ij) p_i: two matrix products instead of N x N x 3 differences.
    """
    n = sizes["N"]
    place, mass = bodies[:, :3], bodies[:, 3]
    square = xp.sum(place * place, axis=1)
    chunk = max(1, PAIRS_AT_ONCE // n)
    rows = []
    for start in range(0, n, chunk):
        stop = min(start + chunk, n)
        mine = place[start:stop, :]
        distance = square[None, :] + square[start:stop, None] - 2.0 * (mine @ xp.permute_dims(place, (1, 0)))
        weight = mass[None, :] * (xp.clip(distance, min=0.0) + softening) ** -1.5
        rows.append(weight @ place - xp.sum(weight, axis=1, keepdims=True) * mine)
    acceleration = xp.concat(rows, axis=0)
    return {"acceleration": xp.concat([acceleration, xp.zeros_like(acceleration[:, :1])], axis=1)}
