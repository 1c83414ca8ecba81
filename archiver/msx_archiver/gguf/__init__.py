"""A GGUF file as a model in Hugging Face's layout: small files are made of its metadata."""
