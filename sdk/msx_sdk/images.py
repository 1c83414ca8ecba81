"""Image files to arrays, those of more than 8 bits a channel too. Needs NumPy and Pillow."""

from msx_core.images.decoder import MAX_PIXELS, ImageDecoder, Picture

__all__ = ["MAX_PIXELS", "ImageDecoder", "Picture"]
