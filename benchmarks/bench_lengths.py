"""What does a decision cost? Run by hand: ``python benchmarks/bench_lengths.py [--streams 1]``.

One batch of 64 requests of the committed trace is decoded under every rule; what it saw before each cycle is
kept, and its decisions, and what it makes of what happened, are made again by the clock. Microseconds a
request: those of a cycle over the requests that ran in it, the mean over all cycles; of that the median over
rounds, with the least and the greatest. Looking up what cycles cost is in it. With more ``--streams`` as many
servers are decided for at once, which shares out what a call of numpy costs.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from simspec.compare.batches import batch_requests, draw_prompts, request_starts
from simspec.compare.costs import open_cost
from simspec.compare.lengths import rules_under_test
from simspec.replay.planned import plan
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import Decision
from simspec.speculation.planning import Happened, Planner, State, Waiting
from simspec.speculation.rule_files import as_planner
from simspec.traces.index import load_trace

TRACE = Path(__file__).parents[1] / "traces" / "smollm2-cpu"
BATCH = 64


def copied(state: State) -> State:
    return {name: values.copy() for name, values in state.items()}


@dataclass(frozen=True)
class Kept:
    """A planner that keeps what it was shown."""

    planner: Planner
    decided: list[tuple[Waiting, State]] = field(default_factory=list)
    happened: list[tuple[State, Happened]] = field(default_factory=list)

    @property
    def sampling_safe(self) -> bool:
        return self.planner.sampling_safe

    def begin(self, streams: int, batch: int, depth: int) -> State:
        return self.planner.begin(streams, batch, depth)

    def decide(self, waiting: Waiting, state: State) -> Decision:
        self.decided.append((waiting, copied(state)))
        return self.planner.decide(waiting, state)

    def observe(self, state: State, happened: Happened) -> State:
        self.happened.append((copied(state), happened))
        return self.planner.observe(state, happened)


def seconds(step: Callable[[], object]) -> float:
    began = time.perf_counter()
    step()
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--streams", type=int, default=1)
    parser.add_argument("--drafter", default="ngram")
    parser.add_argument("--cost", default="float32")
    parser.add_argument("--rounds", type=int, default=7)
    asked = parser.parse_args()
    trace = load_trace(TRACE)
    cost, chain = open_cost(trace, asked.cost), Chain((asked.drafter, trace.target))
    requests, _ = batch_requests(draw_prompts(trace, asked.streams - 1, 0), BATCH)
    queues = request_starts(trace)[requests].reshape(asked.streams, -1, BATCH)
    kept = {}
    for name, rule in rules_under_test(trace).items():
        kept[name] = Kept(as_planner(rule))
        plan(trace, chain, cost, kept[name], queues)
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in kept}
    # All rules once a round, so that whatever else the machine does is shared out between them.
    for _ in range(asked.rounds):
        for name, each in kept.items():
            deciding = learning = requests_run = 0.0
            for (waiting, before), (after, happened) in zip(each.decided, each.happened, strict=True):
                state, moved = copied(before), copied(after)
                deciding += seconds(lambda: each.planner.decide(waiting, state))  # noqa: B023
                learning += seconds(lambda: each.planner.observe(moved, happened))  # noqa: B023
                requests_run += float(waiting.running.sum())
            found[name].append((1e6 * deciding / requests_run, 1e6 * learning / requests_run))
    head = f"batch {BATCH}, {asked.streams} streams, {asked.rounds} rounds, {asked.drafter}, {cost.name}"
    sys.stdout.write(f"microseconds a request, {head}\n")
    for name, rounds in found.items():
        told = []
        for part, values in zip(("decide", "observe"), zip(*rounds, strict=True), strict=True):
            told.append(f"{part} {statistics.median(values):7.2f} ({min(values):.2f} to {max(values):.2f})")
        sys.stdout.write(f"{name:24s} {'   '.join(told)}\n")


if __name__ == "__main__":
    main()
