"""Vidur (PyPI: vidur). Timed: its loop alone, without making the requests, training its predictor and
writing figures.

Its predictor of times is learned from a data set that it fetches; in its place stands this project's affine
cost, which is less work than its own. Its Sarathi scheduler with chunks of the token budget reads prompts
beside decoding, as the engine here does.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import Any

from protocol import BLOCK_TOKENS, BLOCKS, OUTPUT, PROMPT, SLOTS, TOKEN_BUDGET, Done, Prepare, main
from vidur._native.entities import ExecutionTime
from vidur.config import config as vidur
from vidur.entities import Replica
from vidur.execution_time_predictor import ExecutionTimePredictorRegistry
from vidur.simulator import Simulator
from vidur.types import ExecutionTimePredictorType

KIND = ExecutionTimePredictorType.LINEAR_REGRESSION


class Affine:
    """calibrate/h100-llama-3.1-8b.toml, in milliseconds."""

    def __init__(self, **_: object):
        pass

    def get_execution_time(self, batch: Any, _: int) -> ExecutionTime:
        """All of it as the time of one part (the seventh) of one layer."""
        time = 5.886 + 1.207 + 2.1e-2 * sum(batch.num_q_tokens) + 3.93e-5 * sum(batch.num_kv_tokens)
        return ExecutionTime(1, *[0.0] * 6, time, *[0.0] * 7)


def prepare(_: str) -> Prepare:
    """One replica on one GPU."""
    ExecutionTimePredictorRegistry.unregister(KIND)
    ExecutionTimePredictorRegistry.register(KIND, Affine)

    def set_up(requests: int, rate: float | None) -> Callable[[], Done]:
        if rate is None:
            intervals = vidur.StaticRequestIntervalGeneratorConfig()
        else:
            intervals = vidur.PoissonRequestIntervalGeneratorConfig(qps=rate)
        lengths = vidur.FixedRequestLengthGeneratorConfig(prefill_tokens=PROMPT, decode_tokens=OUTPUT)
        config = vidur.SimulationConfig(
            cluster_config=vidur.ClusterConfig(
                replica_config=vidur.ReplicaConfig(tensor_parallel_size=1, num_pipeline_stages=1),
                cache_config=vidur.CacheConfig(block_size=BLOCK_TOKENS, num_blocks=BLOCKS),
                replica_scheduler_config=vidur.SarathiSchedulerConfig(
                    batch_size_cap=SLOTS, chunk_size=TOKEN_BUDGET
                ),
            ),
            request_generator_config=vidur.SyntheticRequestGeneratorConfig(
                num_requests=requests, length_generator_config=lengths, interval_generator_config=intervals
            ),
            execution_time_predictor_config=vidur.LinearRegressionExecutionTimePredictorConfig(),
            metrics_config=vidur.MetricsConfig(
                enable_chrome_trace=False, store_plots=False, store_utilization_metrics=False
            ),
        )
        Replica._id = -1  # it counts its replicas from the first of the process on
        simulator = Simulator(config)
        simulator._write_output = lambda: None
        served = [event._request for _, event in simulator._event_queue]

        def run() -> Done:
            simulator.run()
            tokens = sum(request.num_processed_decode_tokens for request in served)
            return Done(tokens, simulator._time, {})

        return run

    return set_up


if __name__ == "__main__":
    os.chdir(tempfile.mkdtemp())  # it writes where it stands
    main(prepare)
