"""Decoders in MindSpore: Llama, Mistral, Qwen 2 and 3, from folders in Hugging Face's layout."""
