"""Language models that were exported as two MindIR files: one for prompts, one for a token at a time."""
