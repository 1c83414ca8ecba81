"""Mixed traffic for minutes, and proof that a server ends it with what it began: `scripts/soak-connections`."""
