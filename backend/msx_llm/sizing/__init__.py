"""Estimates of what a model takes of a device, by the engine's own division and sizes. It imports no MindSpore."""
