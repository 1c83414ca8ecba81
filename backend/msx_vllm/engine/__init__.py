"""The modules that import vLLM: nothing else knows its names."""
