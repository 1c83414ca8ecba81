"""The benchmark `llm`."""
