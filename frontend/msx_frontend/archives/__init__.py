"""Archives: where they come from, and where they lie."""
