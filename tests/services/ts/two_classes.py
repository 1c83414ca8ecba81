"""More than one class that could be meant."""


class One:
    def initialize(self, context):
        pass

    def handle(self, data, context):
        return ["one"] * len(data)


class Two:
    def initialize(self, context):
        pass

    def handle(self, data, context):
        return ["two"] * len(data)
