"""Kernels of plain MindSpore operators, as they are fast on a CPU."""
