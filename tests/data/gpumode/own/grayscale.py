import torch
from task import input_t, output_t
from utils import make_match_reference


def ref_kernel(data: input_t) -> output_t:
    image, gray = data
    weights = torch.tensor([0.2989, 0.5870, 0.1140], device=image.device, dtype=image.dtype)
    gray[...] = torch.sum(image * weights, dim=-1)
    return gray


def generate_input(size: int, seed: int) -> input_t:
    rng = torch.Generator(device="cuda")
    rng.manual_seed(seed)
    rgb = torch.rand((size, size, 3), device="cuda", dtype=torch.float32, generator=rng)
    luma = torch.empty((size, size), device="cuda", dtype=torch.float32)
    return rgb.contiguous(), luma.contiguous()


check_implementation = make_match_reference(ref_kernel, rtol=1e-4, atol=1e-4)
