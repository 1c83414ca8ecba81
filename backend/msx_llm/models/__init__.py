"""Decoders in MindSpore: Llama, Mistral, Qwen, Phi, GLM and Gemma, from folders in Hugging Face's layout."""
