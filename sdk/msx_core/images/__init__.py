"""Image files to arrays, those of more than 8 bits a channel too. Needs NumPy and Pillow."""
