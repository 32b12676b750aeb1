"""PyTorch's elementwise kernel."""


def library(torch, sizes, A, B, C):
    """Writes C."""
    torch.add(A, B, out=C)
