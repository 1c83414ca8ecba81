"""The folder of this name in llm-serving of 2023, which `config/serving_config.py` of users imports."""
