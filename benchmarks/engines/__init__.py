"""vLLM behind MSX's archives beside vLLM's own server, and MSX's own engine beside both."""
