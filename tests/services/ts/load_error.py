"""Fails to initialize, as the yaml says."""


class LoadError:
    def initialize(self, context):
        raise {"memory": MemoryError, "runtime": RuntimeError, "value": ValueError}[context.model_yaml_config["kind"]](
            context.model_yaml_config["text"]
        )

    def handle(self, data, context):
        return ["never"] * len(data)
