"""Sleep and wake, by vLLM's routes."""
