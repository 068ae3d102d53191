"""How fast is the serving simulator? Run by hand: ``python benchmarks/bench_serving.py [--json FILE]``.

The workload that peers publish: requests of 512 prompt and 128 output tokens, at most 128 in the batch, no
speculation, an affine cost; and replayed speculative decoding, at most 64 in the batch, with a length
that is chosen before every step, for all rows or for each. Output tokens a second, of wall time and of
processor time (which is what the wall would show on an idle machine), without loading and reading files;
small cases are the best of three. Bare SimPy timeouts are counted in the same run, since every step and every
arrival needs one: what they alone would allow is printed beside each figure.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from simpy import Environment

from simspec.cost.models import read_affine
from simspec.serving.arrivals import Listed, Poisson, Sizes, open_loop
from simspec.serving.candidates import Candidate
from simspec.serving.config import Serving, Speculation
from simspec.serving.kvcache import Memory
from simspec.serving.policies import Fixed, Goodput, Policy
from simspec.serving.pricing import Costs
from simspec.serving.row_policies import ByRule, Joint, RowPolicy
from simspec.serving.simulate import Records, simulate
from simspec.serving.switching import Switching
from simspec.serving.verdicts import Rates, Recorded
from simspec.speculation.lengths import G4, ExactMarginal
from simspec.traces.index import load_trace

PROJECT = Path(__file__).parents[1]
COST = read_affine(PROJECT / "calibrate" / "h100-llama-3.1-8b.toml")
PROMPT, OUTPUT = 512, 128
# 80 GB less 16 GB of weights and some more, at 128 KiB a token: about 28,000 blocks of 16 tokens.
MEMORY = Memory(block_tokens=16, target_blocks=28_000)
PLAIN = Serving(Costs(COST, "target"), slots=128, memory=MEMORY)


@dataclass(frozen=True)
class Timed:
    """One case: what was simulated and how long it took."""

    name: str
    requests: int
    output_tokens: int
    steps: int
    mean_rows: float
    wall_seconds: float
    cpu_seconds: float
    simpy_limit_tokens_per_second: float | None = None


def timeouts_per_second(count: int = 200_000) -> float:
    """Bare SimPy: one process that waits so often and does nothing else; the best of three."""

    def waits(env: Environment):
        for _ in range(count):
            yield env.timeout(1)

    best = 0.0
    for _ in range(3):
        env = Environment()
        env.process(waits(env))
        begin = time.perf_counter()
        env.run()
        best = max(best, count / (time.perf_counter() - begin))
    return best


def timed(name: str, run: Callable[[], Records], requests: int, repeats: int, limit: float) -> Timed:
    """Run a case a few times and keep the best."""
    best = (float("inf"), 0.0)
    for _ in range(repeats):
        begin = time.perf_counter(), time.process_time()
        records = run()
        best = min(best, (time.perf_counter() - begin[0], time.process_time() - begin[1]))
    tokens = sum(records.requests["produced_tokens"].to_pylist())
    assert tokens == requests * OUTPUT
    steps = records.steps.num_rows
    rows = sum(records.steps["decoding_requests"].to_pylist()) / steps
    # A timeout for every step and one for every arrival, as if no steps were computed together.
    events = (steps + requests) / limit
    return Timed(name, requests, tokens, steps, rows, *best, tokens / events)


def load(count: int, rate: float | None):
    """Arrivals: all at once, or Poisson."""
    process = Listed((0.0,) * count) if rate is None else Poisson(rate)
    return open_loop(process, Sizes.alike(count, PROMPT, OUTPUT), 0)


def plain_cases(limit: float) -> list[Timed]:
    """The peers' workload. 50 requests a second are more than the engine serves, 20 are half of that."""
    found = []
    for count in (1_000, 50_000):
        for label, rate in (("all at once", None), ("Poisson 50/s", 50.0), ("Poisson 20/s", 20.0)):
            for serving, how in ((PLAIN, ""), (replace(PLAIN, stride=False), ", step by step")):
                if how and count > 1_000:
                    continue
                name = f"plain, {count:,} requests, {label}{how}"
                repeats = 3 if count == 1_000 else 1
                found.append(
                    timed(
                        name,
                        lambda s=serving, r=rate, n=count: simulate(s, load(n, r), 0),
                        count,
                        repeats,
                        limit,
                    )
                )
    return found


def speculative_cases(limit: float) -> list[Timed]:
    """Replayed drafts of the committed trace at the published cost; 64 in the batch."""
    trace = load_trace(PROJECT / "traces" / "smollm2-cpu")
    found = []
    sources = {drafter: Recorded.of_trace(trace, drafter) for drafter in trace.drafters}
    cases: list[tuple[str, Policy | RowPolicy | Switching, str]] = [
        ("skip-10", Goodput(5), "length chosen each step"),
        ("skip-10", Fixed(4), "length 4"),
        ("ngram", Goodput(8), "length chosen each step"),
        ("skip-2", ByRule(G4(2, 2, 1, 8), 8), "each row by G4"),
        ("skip-2", ByRule(ExactMarginal(8), 8), "each row by its confidences"),
        ("ngram", ByRule(ExactMarginal(8), 8), "each row by its confidences"),
        ("skip-2", Joint(8), "rows share a step's drafts"),
        ("ngram", Switching(5), "or skip-10, chosen each step"),
    ]
    for drafter, policy, label in cases:
        costs = Costs(COST, "target", drafter, lookup=trace.is_lookup(drafter))
        others = (Candidate("skip-10", sources["skip-10"], COST),) if isinstance(policy, Switching) else ()
        speculation = Speculation(policy, sources[drafter], others=others)
        serving = Serving(costs, 64, speculation, MEMORY)
        lengths: Counter[int] = Counter()

        def run(serving: Serving = serving, lengths: Counter[int] = lengths) -> Records:
            records = simulate(serving, load(4_000, 50.0), 0)
            lengths.clear()
            lengths.update(records.steps["draft_length_tokens"].to_pylist())
            return records

        case = timed(f"replayed {drafter}, {label}", run, 4_000, 3, limit)
        total = sum(lengths.values())
        shares = " ".join(f"{n}:{100 * c / total:.0f}%" for n, c in sorted(lengths.items()))
        found.append(replace(case, name=f"{case.name} ({shares})"))
    costs = Costs(COST, "target", "skip-10")
    drawn = Serving(costs, 64, Speculation(Goodput(5), Rates.independent(0.7, 5)), MEMORY)
    found.append(
        timed(
            "drawn i.i.d. .7, length chosen each step",
            lambda: simulate(drawn, load(4_000, 50.0), 0),
            4_000,
            3,
            limit,
        )
    )
    return found


def scaling_cases() -> list[Timed]:
    """Tokens times ten and times ten again, tables going to disk."""
    found = []
    for tokens in (10**5, 10**6, 10**7):
        count = tokens // OUTPUT
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder)
            begin = time.perf_counter(), time.process_time()
            records = simulate(PLAIN, load(count, 50.0), 0, folder=path)
            spent = time.perf_counter() - begin[0], time.process_time() - begin[1]
            size = sum(f.stat().st_size for f in path.iterdir())
        assert records.arrived == count
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        made = count * OUTPUT
        name = f"plain, {made:,} tokens, to disk: {size / 1e6:.1f} MB, peak memory so far {peak:.0f} MiB"
        found.append(Timed(name, count, made, 0, 0.0, *spent))
    return found


def main() -> None:
    """Measure, print, and keep as JSON where asked to."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path, help="write the figures there")
    wanted = parser.parse_args()
    limit = timeouts_per_second()
    out = sys.stdout.write
    out(f"bare SimPy: {limit / 1e6:.2f}M timeouts a second\n")
    # Memory first: the process's peak never falls.
    cases = scaling_cases() + plain_cases(limit) + speculative_cases(limit)
    out("tokens/s: wall     CPU\n")
    for case in cases:
        wall, cpu = case.output_tokens / case.wall_seconds, case.output_tokens / case.cpu_seconds
        out(f"{wall / 1e6:12.2f}M {cpu / 1e6:6.2f}M {case.wall_seconds:7.3f} s")
        if case.simpy_limit_tokens_per_second:
            per_step = 1e6 * case.cpu_seconds / case.steps
            out(f" {case.steps:7,} steps {per_step:6.1f} us/step {case.mean_rows:5.1f} rows")
            out(f" (SimPy alone {case.simpy_limit_tokens_per_second / 1e6:4.1f}M)")
        out(f"  {case.name}\n")
    if wanted.json:
        found = {"simpy_timeouts_per_second": limit, "cases": [case.__dict__ for case in cases]}
        wanted.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
