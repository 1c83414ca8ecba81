"""Sleep of an engine, where vLLM has it: on devices, with `enable_sleep_mode`."""

from typing import Any

from msx_core.generation.sleep import ALL, AWAKE


class EngineSleep:
    """`level` is that of `SleepRequest`. vLLM moves the weights to the host's memory at level 1, and drops them at 2.

    https://docs.vllm.ai/en/latest/features/sleep_mode.html
    """

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self.is_able = bool(engine.model_config.enable_sleep_mode)
        self.level = AWAKE

    async def change(self, level: int) -> int:
        """The level afterwards: a deeper sleep than `level` goes on. Only while there are no requests."""
        if level == AWAKE:
            await self._wake()
        elif level > self.level:
            await self._wake()  # what vLLM keeps in a lighter sleep, it would keep in the deeper one
            await self._engine.sleep(level)
            self.level = level
        return self.level

    async def _wake(self) -> None:
        if self.level == ALL:
            await self._engine.wake_up(["weights"])
            await self._engine.collective_rpc("reload_weights")
            await self._engine.wake_up(["kv_cache"])
        elif self.level != AWAKE:
            await self._engine.wake_up()
        self.level = AWAKE
