"""Texts in, vectors out: encoders like BERT, and decoders by the state of their last token."""
