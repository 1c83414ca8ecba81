"""Models that were exported as two MindIR files."""
