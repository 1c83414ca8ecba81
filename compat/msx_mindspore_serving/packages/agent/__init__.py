"""The folder of this name in llm-serving of 2023, for start scripts that stand alone."""
