"""PyTorch's fused softmax."""


def library(torch, sizes, X, Y):
    """Writes Y."""
    torch.ops.aten._softmax.out(X, -1, False, out=Y)
