"""Workers that follow the load: the decision, what it remembers, and what carries it out."""
