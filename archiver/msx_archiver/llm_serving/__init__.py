"""Models of llm-serving, MindSpore's server of language models, by the yaml that starts them there."""
