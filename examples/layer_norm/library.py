"""PyTorch's fused layer normalisation; it also gives mean and reciprocal deviation of each row."""


def library(torch, sizes, X, G, B, Y):
    """Writes Y."""
    mean, deviation = torch.empty_like(X[:, :1]), torch.empty_like(X[:, :1])
    torch.ops.aten.native_layer_norm.out(X, [X.shape[1]], G, B, 1e-5, out0=Y, out1=mean, out2=deviation)
