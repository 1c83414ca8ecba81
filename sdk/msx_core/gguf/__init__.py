"""Files of llama.cpp: a header of metadata and tensors, and weights in blocks with scales of their own."""
