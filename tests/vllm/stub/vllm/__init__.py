"""The names of vLLM that `msx_vllm` uses, with a small engine behind them: see tests/vllm/test_real.py."""

__version__ = "0.0.stub"
