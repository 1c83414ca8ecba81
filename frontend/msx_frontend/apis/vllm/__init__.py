"""Routes of vLLM's own server that OpenAI's API does not have."""
