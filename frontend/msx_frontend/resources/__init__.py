"""What a worker group needs before it can start, who has it, and who waits for it."""
