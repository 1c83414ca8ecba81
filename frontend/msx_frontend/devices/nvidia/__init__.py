"""NVIDIA's GPUs, by NVML in a process of its own. Nothing here loads CUDA."""
