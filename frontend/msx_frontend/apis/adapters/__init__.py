"""Loading and unloading adapters of language models, as vLLM has it."""
