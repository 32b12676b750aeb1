import torch
from task import input_t, output_t
from utils import make_match_reference


def ref_kernel(data: input_t) -> output_t:
    left, right, total = data
    total[...] = left + right
    return total


def generate_input(size: int, seed: int) -> input_t:
    rng = torch.Generator(device="cuda")
    rng.manual_seed(seed)
    A = torch.randn(size, size, device="cuda", dtype=torch.float16, generator=rng)
    B = torch.randn(size, size, device="cuda", dtype=torch.float16, generator=rng)
    C = torch.empty(size, size, device="cuda", dtype=torch.float16)
    return A, B, C


check_implementation = make_match_reference(ref_kernel)
