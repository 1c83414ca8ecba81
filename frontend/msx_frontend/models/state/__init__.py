"""What a restarted server knows again."""
