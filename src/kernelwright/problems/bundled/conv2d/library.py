"""cuDNN, in full fp32; its first call finds the fastest algorithm."""


def library(torch, sizes, X, weights, Y):
    """Writes Y."""
    stride, padding, dilation = [1, 1], [1, 1], [1, 1]
    find, repeatable, tf32 = True, False, False
    torch.ops.aten.cudnn_convolution.out(
        X, weights, padding, stride, dilation, 1, find, repeatable, tf32, out=Y
    )
