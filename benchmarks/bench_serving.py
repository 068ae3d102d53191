"""How fast is the serving simulator? Run by hand: ``python benchmarks/bench_serving.py [--only replayed]``.

``replayed``: speculative decoding replayed from the committed trace, at most 64 in the batch, under every
rule that chooses lengths before each step, for all rows or for each. ``plain``: the workload that peers
publish, requests of 512 prompt and 128 output tokens, at most 128 in the batch, no speculation. ``scaling``:
tokens times ten and times ten again, tables going to disk. All at an affine cost.

Output tokens a second, of wall time and of processor time (which is what the wall would show on an idle
machine), without loading and reading files: medians over rounds, with the slowest and the fastest. A round
runs every case once, so that whatever else the machine does is shared out between them. Bare SimPy timeouts
are counted in the same rounds, since every step and every arrival needs one: what they alone would allow is
printed beside each figure.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from simpy import Environment

from simspec.cost.models import read_affine
from simspec.serving.arrivals import Listed, Poisson, Sizes, open_loop
from simspec.serving.candidates import Candidate
from simspec.serving.config import Serving, Speculation
from simspec.serving.kvcache import Memory
from simspec.serving.policies import Goodput, OffAbove, Policy
from simspec.serving.pricing import Costs
from simspec.serving.row_policies import ByRule, Joint, RowPolicy
from simspec.serving.simulate import Records, simulate
from simspec.serving.switching import Switching
from simspec.serving.verdicts import Rates, Recorded
from simspec.speculation.lengths import G4, ExactMarginal, LibraSpec
from simspec.traces.index import load_trace

PROJECT = Path(__file__).parents[1]
COST = read_affine(PROJECT / "calibrate" / "h100-llama-3.1-8b.toml")
PROMPT, OUTPUT = 512, 128
# 80 GB less 16 GB of weights and some more, at 128 KiB a token: about 28,000 blocks of 16 tokens.
MEMORY = Memory(block_tokens=16, target_blocks=28_000)
PLAIN = Serving(Costs(COST, "target"), slots=128, memory=MEMORY)


@dataclass(frozen=True)
class Case:
    """What is simulated."""

    name: str
    serving: Serving
    requests: int
    rate: float | None


@dataclass(frozen=True)
class Timed:
    """How long a case took in each round, and what came of it."""

    name: str
    requests: int
    output_tokens: int
    wall_seconds: tuple[float, ...]
    cpu_seconds: tuple[float, ...]
    steps: int = 0
    mean_rows: float = 0.0
    lengths: str = ""


def timeouts_per_second(count: int = 200_000) -> tuple[float, float]:
    """Bare SimPy: one process that waits so often and does nothing else; a wall and a processor second."""

    def waits(env: Environment):
        for _ in range(count):
            yield env.timeout(1)

    env = Environment()
    env.process(waits(env))
    begin = time.perf_counter(), time.process_time()
    env.run()
    return count / (time.perf_counter() - begin[0]), count / (time.process_time() - begin[1])


def timed(case: Case, runs: list[tuple[float, float]], records: Records) -> Timed:
    """A case's rounds, (wall, processor) seconds each; its records, which are the same in all of them."""
    tokens = sum(records.requests["produced_tokens"].to_pylist())
    assert tokens == case.requests * OUTPUT
    steps = records.steps.num_rows
    rows = sum(records.steps["decoding_requests"].to_pylist()) / steps
    asked = Counter(records.steps["draft_length_tokens"].to_pylist())
    lengths = " ".join(
        f"{n}:{share:.0f}%" for n, c in sorted(asked.items()) if (share := 100 * c / steps) >= 1
    )
    wall, cpu = zip(*runs, strict=True)
    return Timed(case.name, case.requests, tokens, wall, cpu, steps, rows, lengths)


def rounds_of(cases: list[Case], rounds: int) -> tuple[list[Timed], list[tuple[float, float]]]:
    """Every case in every round; and bare SimPy timeouts a second in each."""
    runs: dict[str, list[tuple[float, float]]] = {case.name: [] for case in cases}
    kept: dict[str, Records] = {}
    limits = []
    for _ in range(rounds):
        limits.append(timeouts_per_second())
        for case in cases:
            asked = load(case.requests, case.rate)
            begin = time.perf_counter(), time.process_time()
            kept[case.name] = simulate(case.serving, asked, 0)
            runs[case.name].append((time.perf_counter() - begin[0], time.process_time() - begin[1]))
    return [timed(case, runs[case.name], kept[case.name]) for case in cases], limits


def load(count: int, rate: float | None):
    """Arrivals: all at once, or Poisson."""
    process = Listed((0.0,) * count) if rate is None else Poisson(rate)
    return open_loop(process, Sizes.alike(count, PROMPT, OUTPUT), 0)


def plain_cases() -> list[Case]:
    """The peers' workload. 50 requests a second are more than the engine serves, 20 are half of that."""
    found = []
    for count in (1_000, 50_000):
        for label, rate in (("all at once", None), ("Poisson 50/s", 50.0), ("Poisson 20/s", 20.0)):
            for serving, how in ((PLAIN, ""), (replace(PLAIN, stride=False), ", step by step")):
                if not how or count == 1_000:
                    found.append(Case(f"plain, {count:,} requests, {label}{how}", serving, count, rate))
    return found


def replayed_cases() -> list[Case]:
    """Every rule on the drafter that is accepted most and on the look-up; and one on drawn verdicts."""
    trace = load_trace(PROJECT / "traces" / "smollm2-cpu")
    sources = {drafter: Recorded.of_trace(trace, drafter) for drafter in trace.drafters}
    rules: list[tuple[str, Policy | RowPolicy | Switching]] = [
        ("goodput", Goodput(8)),
        ("off above 63 rows, on at 62", OffAbove(4, 63, 62)),
        ("G4", ByRule(G4(2, 2, 1, 8), 8)),
        ("LibraSpec, blocks of 4 up to 8", ByRule(LibraSpec(2.2, 4, 8), 12)),
        ("LibraSpec, as printed", ByRule(LibraSpec(), 26)),
        ("exact marginal", ByRule(ExactMarginal(8), 8)),
        ("joint", Joint(8)),
        ("switching, or skip-10", Switching(8)),
    ]
    found = []
    for drafter in ("skip-2", "ngram"):
        costs = Costs(COST, "target", drafter, lookup=trace.is_lookup(drafter))
        for name, policy in rules:
            others = (
                (Candidate("skip-10", sources["skip-10"], COST),) if isinstance(policy, Switching) else ()
            )
            speculation = Speculation(policy, sources[drafter], others=others)
            found.append(Case(f"{drafter}, {name}", Serving(costs, 64, speculation, MEMORY), 2_000, 50.0))
    drawn = Speculation(Goodput(5), Rates.independent(0.7, 5))
    serving = Serving(Costs(COST, "target", "skip-10"), 64, drawn, MEMORY)
    return [*found, Case("drawn i.i.d. .7, goodput", serving, 2_000, 50.0)]


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
        found.append(Timed(name, count, made, spent[:1], spent[1:]))
    return found


def show(case: Timed, limit: float) -> str:
    """A line of the table."""
    speeds = [case.output_tokens / seconds / 1e6 for seconds in case.wall_seconds]
    cpu = statistics.median(case.cpu_seconds)
    line = f"{statistics.median(speeds):6.2f}M ({min(speeds):5.2f} to {max(speeds):5.2f}) "
    line += f"{case.output_tokens / cpu / 1e6:6.2f}M "
    if case.steps:
        line += f"{1e6 * cpu / case.steps:6.1f} us/step {case.steps:6,} steps {case.mean_rows:5.1f} rows "
        # A timeout for every step and one for every arrival, as if no steps were computed together.
        line += f"(SimPy {case.output_tokens * limit / (case.steps + case.requests) / 1e6:4.1f}M) "
    return f"{line} {case.name}" + (f" ({case.lengths})" if case.lengths not in ("", "0:100%") else "")


def main() -> None:
    """Measure, print, and keep as JSON where asked to."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--only", choices=("scaling", "plain", "replayed"), help="this part alone")
    parser.add_argument("--rounds", type=int, default=5)
    wanted = parser.parse_args()
    # Memory first: the process's peak never falls.
    found = scaling_cases() if wanted.only in (None, "scaling") else []
    plain = plain_cases() if wanted.only in (None, "plain") else []
    replayed = replayed_cases() if wanted.only in (None, "replayed") else []
    cases, limits = rounds_of(plain + replayed, wanted.rounds)
    wall, cpu = zip(*limits, strict=True)
    limit = statistics.median(cpu)
    out = sys.stdout.write
    out(f"bare SimPy, timeouts a second: {statistics.median(wall) / 1e6:.2f}M of wall time ")
    out(f"({min(wall) / 1e6:.2f} to {max(wall) / 1e6:.2f}), {limit / 1e6:.2f}M of processor time\n")
    out(f"output tokens a second, median of {len(limits)} rounds: wall, and of processor time\n")
    for case in found + cases:
        out(show(case, limit) + "\n")
    if wanted.json:
        told = {"simpy_timeouts_per_second": limits, "cases": [vars(case) for case in found + cases]}
        wanted.json.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
