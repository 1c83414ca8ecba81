"""TorchServe's published examples by the commands of their READMEs, with small models of random weights.

Their handlers are made anew in tests/services/ts/examples: the same base classes, imports and calls. Where
MSX_TORCHSERVE_EXAMPLES names a clone of pytorch/serve, its own files are run instead, unchanged.
"""
