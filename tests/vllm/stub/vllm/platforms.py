class _Platform:
    device_type = "cpu"

    def is_cpu(self) -> bool:
        return True


current_platform = _Platform()
