"""AISimulate (PyPI: aisimulate; a core in Rust). Timed: the runner's call, which makes the requests, serves
them and reports figures. Its built-in polynomial cost, vLLM's scheduler, no cache of prefixes, as here.
"""

from __future__ import annotations

from collections.abc import Callable

from aisimulate.compiler import prediction_to_replay_spec
from aisimulate.config.cli import CorePredictionConfig
from aisimulate.runner import EngineReplayRunnerFactory
from aisimulate.sweeper.replay import ReplayOutputRequirements
from protocol import BLOCK_TOKENS, BLOCKS, OUTPUT, PROMPT, SLOTS, TOKEN_BUDGET, Done, Prepare, main

WORKER = {
    "timing": {"type": "polynomial"},
    "scheduler": {"max_sequences": SLOTS, "max_batched_tokens": TOKEN_BUDGET},
    "kv_cache": {
        "block_size": BLOCK_TOKENS,
        "prefix_caching": False,
        "capacity": {"type": "fixed", "blocks": BLOCKS},
    },
}


def prepare(_: str) -> Prepare:
    """One worker of one GPU."""
    runner = EngineReplayRunnerFactory().create(0)

    def set_up(requests: int, rate: float | None) -> Callable[[], Done]:
        if rate is None:
            load = {"type": "concurrency", "concurrency": requests}
        else:
            load = {"type": "poisson", "requests_per_second": rate, "seed": 0}
        source = {"type": "synthetic", "input_tokens": PROMPT, "output_tokens": OUTPUT}
        config = CorePredictionConfig.model_validate(
            {
                "traffic": {"source": source, "load": load, "stop": {"requests": requests}},
                "engine": {
                    "model": "meta-llama/Meta-Llama-3.1-8B",
                    "hardware": "h100_sxm",
                    "backend": "vllm",
                    "workers": {"aggregated": WORKER},
                },
            }
        )
        spec = prediction_to_replay_spec(config, adapter_specs={}, execution_mode="offline")

        def run() -> Done:
            report = runner.run(spec, output_requirements=ReplayOutputRequirements(include_raw_report=True))
            found = report.metadata["native_report"]
            found = found.get("summary", found)
            assert found["completed_requests"] == requests
            return Done(found["total_output_tokens"], found["duration_ms"] / 1e3, {})

        return run

    return set_up


if __name__ == "__main__":
    main(prepare)
