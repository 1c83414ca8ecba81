"""What a device computes: a package for each kind, behind the Protocol `Kernels` of `models/kernels.py`."""
