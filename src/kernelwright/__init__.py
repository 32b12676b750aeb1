"""Kernelwright: an autonomous engineer for CUDA kernels."""

__version__ = "0.1.0"
