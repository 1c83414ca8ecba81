"""Changes that operators make: each is checked, saved, and only then in force."""
