import torch
from task import input_t, output_t
from utils import make_match_reference


def ref_kernel(data: input_t) -> output_t:
    a, b, c = data
    c[...] = a @ b
    return c


def generate_input(m: int, n: int, k: int, seed: int) -> input_t:
    rng = torch.Generator(device="cuda")
    rng.manual_seed(seed)
    a = torch.empty(m, k, device="cuda", dtype=torch.float16)
    a.uniform_(0, 1, generator=rng)
    b = torch.empty(k, n, device="cuda", dtype=torch.float16)
    b.uniform_(0, 1, generator=rng)
    c = torch.empty(m, n, device="cuda", dtype=torch.float16)
    return a, b, c


check_implementation = make_match_reference(ref_kernel, rtol=1e-3, atol=1e-3)
