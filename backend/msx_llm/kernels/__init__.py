"""The computations of each kind of device, a package for each, behind the Protocol `Kernels` of `models/kernels.py`."""
