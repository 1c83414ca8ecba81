"""JSON schemas of bodies, and examples of them."""
