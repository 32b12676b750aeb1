"""The board's side in torch: fresh inputs of a case, and the right output. Written from the board's description."""

import torch


def generate_input(m, n, k, seed):
    """(A, B, C): the output's buffer comes along."""
    generator = torch.Generator(device="cuda").manual_seed(seed)
    kind = {"device": "cuda", "dtype": torch.float16}
    a = torch.randn(m, k, generator=generator, **kind)
    b = torch.randn(k, n, generator=generator, **kind)
    return a, b, torch.empty(m, n, **kind)


def expected(data):
    """The right output of these inputs."""
    a, b, _ = data
    return a @ b


def is_right(data, output):
    """Whether an output is right: within what two orders of fp32 sums and one rounding may differ by."""
    right = expected(data).float()
    return torch.allclose(output.float(), right, rtol=2e-3, atol=2e-3 * float(right.square().mean().sqrt()))
