"""The operators of Ascend NPUs that a decoder calls, in NumPy on the CPU, stricter than MindSpore's own checks.

`registry.emulated()` hands them over. Each has the constructor and the call of MindSpore's primitive, takes and returns
tensors, and raises `Refused` where an NPU's kernel would fail, compute something else or read what nobody wrote.
Results that no caller may read are full of NaN."""
