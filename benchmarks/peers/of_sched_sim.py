"""sched-sim (PyPI: sched-sim; plain Python). Timed: its loop and its figures, without making the requests.

Its own roofline cost (its H100 and its model of 8 billion), and its first-come-first-served scheduler, which
reads whole prompts beside decoding, without a token budget: its chunked one does not keep to the batch's cap.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from protocol import BLOCK_TOKENS, OUTPUT, PROMPT, SLOTS, Done, Prepare, main
from sched_sim.core.event_engine import Simulator
from sched_sim.core.request import Request
from sched_sim.hardware.presets import get_hardware_profile
from sched_sim.schedulers.factory import create_scheduler

# What a profile says of the model: 8 billion parameters beside the A100, 70 beside the H100.
MODEL = (
    "model_name",
    "parameter_count_billions",
    "num_layers",
    "hidden_size",
    "num_heads",
    "num_kv_heads",
    "head_dim",
)


def prepare(_: str) -> Prepare:
    """One engine on one GPU."""
    small = get_hardware_profile("a100")
    hardware = get_hardware_profile("h100").model_copy(update={name: getattr(small, name) for name in MODEL})

    def set_up(requests: int, rate: float | None) -> Callable[[], Done]:
        luck, now, sent = random.Random(0), 0.0, []
        for number in range(requests):
            now += luck.expovariate(rate) if rate else 0.0
            sent.append(
                Request(request_id=str(number), arrived_at=now, prompt_tokens=PROMPT, output_tokens=OUTPUT)
            )
        scheduler = create_scheduler("fcfs", hardware, max_batch_size=SLOTS)
        simulator = Simulator(hardware, scheduler, block_size=BLOCK_TOKENS)

        def run() -> Done:
            simulator.submit_workload(sent)
            simulator.run()
            assert max(simulator.iteration_batch_sizes) <= SLOTS
            tokens = sum(request.decoded_tokens for request in sent)
            return Done(tokens, simulator.current_time, {"steps": len(simulator.iteration_records)})

        return run

    return set_up


if __name__ == "__main__":
    main(prepare)
