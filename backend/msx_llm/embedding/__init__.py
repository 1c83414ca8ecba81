"""Texts in, vectors out: encoders like BERT, and decoders, causal or not."""
