"""The board's side in torch: fresh inputs of a case, and the right output. Written from the board's description."""

import torch


def generate_input(size, contention, seed):
    """(values, counts): one value takes ``contention`` percent of the places; the output's buffer comes along."""
    generator = torch.Generator(device="cuda").manual_seed(seed)
    values = torch.randint(0, 256, (size,), device="cuda", dtype=torch.uint8, generator=generator)
    often = torch.rand(size, device="cuda", generator=generator) < contention / 100
    values[often] = values[0].clone()
    return values, torch.empty(256, device="cuda", dtype=torch.int64)


def expected(data):
    """The right output of these inputs."""
    values, _ = data
    return torch.bincount(values, minlength=256)


def is_right(data, output):
    """Whether an output is right."""
    return bool(torch.equal(output, expected(data)))
