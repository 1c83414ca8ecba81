"""The NPUs: which there are, and who uses them."""
