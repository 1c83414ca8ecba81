class _Platform:
    device_type = "cpu"
    device_control_env_var = "STUB_VISIBLE_DEVICES"

    def is_cpu(self) -> bool:
        return self.device_type == "cpu"

    def is_sleep_mode_available(self) -> bool:
        return self.device_type != "cpu"


current_platform = _Platform()
