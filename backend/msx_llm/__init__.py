"""The language model engine: models, cache, scheduler, sampling and text."""
