"""Kernels of Ascend NPUs: MindSpore's fused operators, called as docs/ascend.md says.

None of it has been run on an NPU; tests run it on an emulation of the operators, and through MindSpore's own checks."""
