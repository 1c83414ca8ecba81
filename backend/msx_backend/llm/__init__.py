"""The old name of `msx_llm`."""
