"""The register of llm-serving's inputs and tokenizers, which have no effect here."""


def import_all_modules_for_register() -> None:
    """Do nothing: inputs are known by their names."""
