"""The serving simulator beside others, in one run: ``bench_peers.py --peer-python NAME=PYTHON ...``.

The workload that peers publish: requests of 512 prompt and 128 output tokens, at most 128 in the batch, no
speculation, KV memory that never binds; all at once, and Poisson. Each simulator runs in a process and an
interpreter of its own, by its adapter in ``peers/``, which says what is timed. Rounds are interleaved, and
each begins with another simulator, since others may use the machine; for the same reason speeds are of
processor time first, which is what the wall would show on an idle machine. A peer that is not installed is
skipped, one that makes another number of tokens is left out, and either is said. Whatever waits in SimPy
takes an event: what bare SimPy, measured in the same rounds, would allow stands beside the engine's speed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ADAPTERS = Path(__file__).with_name("peers")
OUTPUT = 128
SIMPY_TIMEOUTS = 200_000


@dataclass(frozen=True)
class Peer:
    """A simulator, or a way to run one.

    Attributes:
        name: its package, and what ``--peer-python`` calls it.
        label: in the table.
    """

    name: str
    label: str
    adapter: str
    variant: str = ""


OURS = Peer("simspec", "simspec", "of_simspec.py")
STEPS = Peer("simspec", "simspec, step by step", "of_simspec.py", "steps")
SIMPY = Peer("simpy", "bare SimPy", "of_simpy.py")
OTHERS = (
    Peer("aisimulate", "AISimulate (Rust)", "of_aisimulate.py"),
    Peer("vidur", "Vidur (Python)", "of_vidur.py"),
    Peer("sched-sim", "sched-sim (Python)", "of_sched_sim.py"),
)


@dataclass(frozen=True)
class Case:
    """Requests, and how many a second (None: all at once)."""

    requests: int
    rate: float | None

    def __str__(self) -> str:
        how = "all at once" if self.rate is None else f"Poisson {self.rate:g}/s"
        return f"{self.requests:,} requests, {how}"


@dataclass(frozen=True)
class Speed:
    """One process of a simulator: tokens a second, the median of its calls, and what it counted."""

    cpu: float
    wall: float
    simulated_seconds: float
    counts: dict[str, int]


class Unusable(Exception):
    """This simulator gave no speed that can stand beside others, and why."""


def read(printed: str, tokens: int) -> Speed:
    """The speed from what an adapter printed; its last line is JSON, whatever the simulator said before.

    Args:
        tokens: that it had to make.

    Raises:
        Unusable: no such line, or another number of tokens.
    """
    last = printed.strip().rpartition("\n")[2]
    try:
        calls: list[dict[str, Any]] = json.loads(last)["calls"]
    except (ValueError, KeyError, TypeError):
        raise Unusable(f"its output ends with {last[-80:]!r}") from None
    made = {call["output_tokens"] for call in calls}
    if made != {tokens}:
        raise Unusable(f"made {sorted(made)} tokens, not {tokens:,}")

    def rate(seconds: str) -> float:
        return tokens / statistics.median(call[seconds] for call in calls)

    counts, ended = calls[-1]["counts"], calls[-1]["simulated_seconds"]
    return Speed(rate("cpu_seconds"), rate("wall_seconds"), ended, counts)


def run(python: str, peer: Peer, case: Case, limit_seconds: float) -> Speed:
    """One process: once through what takes a second or more, five times through what does not."""
    bare = peer is SIMPY
    requests = SIMPY_TIMEOUTS if bare else case.requests
    command = [python, str(ADAPTERS / peer.adapter), "--requests", str(requests), "--variant", peer.variant]
    command += ["--calls", "5" if bare or requests < 10_000 else "1"]
    if case.rate is not None:
        command += ["--rate", str(case.rate)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=limit_seconds, check=False
        )
    except subprocess.TimeoutExpired:
        raise Unusable(f"took more than {limit_seconds:g} s") from None
    if done.returncode:
        raise Unusable(done.stderr.strip().rpartition("\n")[2][-200:] or f"exit code {done.returncode}")
    return read(done.stdout, requests if bare else requests * OUTPUT)


def version(python: str, package: str) -> str | None:
    """The version of a package in an interpreter; None where it has none."""
    asked = f"import importlib.metadata as m; print(m.version({package!r}))"
    done = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def spread(values: Sequence[float], scale: float = 1.0) -> str:
    """Median, least and most."""
    middle, least, most = (
        f"{value / scale:.2f}" for value in (statistics.median(values), min(values), max(values))
    )
    return f"{middle} ({least} to {most})"


def table(case: Case, rounds: dict[Peer, list[Speed]]) -> str:
    """Markdown: one line for each simulator, fastest first; ratios are taken round by round."""
    lines = [
        f"{case}:\n",
        "| simulator | Mtoken/s of processor time | of wall time | simspec's speed over it | simulated |",
        "| --- | --- | --- | --- | --- |",
    ]
    if missing := [peer.label for peer in (OURS, STEPS, SIMPY) if not rounds.get(peer)]:
        return f"{case}: no table without {', '.join(missing)}\n"
    ours = [speed.cpu for speed in rounds[OURS]]
    others = [peer for peer in rounds if peer is not SIMPY]
    for peer in sorted(others, key=lambda peer: -statistics.median(speed.cpu for speed in rounds[peer])):
        found = rounds[peer]
        cpu, wall = [speed.cpu for speed in found], [speed.wall for speed in found]
        times = "" if peer is OURS else spread([a / b for a, b in zip(ours, cpu, strict=True)])
        seconds = f"{found[-1].simulated_seconds:,.1f} s"
        lines.append(f"| {peer.label} | {spread(cpu, 1e6)} | {spread(wall, 1e6)} | {times} | {seconds} |")
    return "\n".join(lines) + "\n\n" + limit(case, rounds)


def limit(case: Case, rounds: dict[Peer, list[Speed]]) -> str:
    """How far the engine is from what SimPy alone would allow, in words."""
    tokens = case.requests * OUTPUT
    bare = [speed.cpu for speed in rounds[SIMPY]]
    text = f"Bare SimPy: {spread(bare, 1e6)} M timeouts/s of processor time.\n"
    for peer in (OURS, STEPS):
        counts = rounds[peer][-1].counts
        allowed = [timeouts * tokens / counts["events"] for timeouts in bare]
        share = [100 * speed.cpu / most for speed, most in zip(rounds[peer], allowed, strict=True)]
        often = 1e3 * counts["events"] / tokens
        text += (
            f"{peer.label}: {counts['steps']:,} steps, {often:.2f} events per 1,000 tokens; as many bare "
            f"timeouts would allow {statistics.median(allowed) / 1e6:.0f} Mtoken/s, of which it reaches "
            f"{statistics.median(share):.1f}%.\n"
        )
    return text


def measure(
    pythons: dict[Peer, str], cases: Sequence[Case], rounds: int, limit_seconds: float
) -> tuple[dict[Case, dict[Peer, list[Speed]]], list[str]]:
    """All rounds; and who was left out of what, and why."""
    found: dict[Case, dict[Peer, list[Speed]]] = {case: defaultdict(list) for case in cases}
    out: dict[tuple[Case, Peer], str] = {}
    order = list(pythons)
    for number in range(rounds):
        for case in cases:
            for peer in order:
                if (case, peer) in out:
                    continue
                try:
                    found[case][peer].append(run(pythons[peer], peer, case, limit_seconds))
                except Unusable as why:
                    out[case, peer] = f"{peer.label} is left out of {case}: {why}"
                    found[case].pop(peer, None)
        order = [*order[1:], order[0]]
        sys.stderr.write(f"round {number + 1} of {rounds} done\n")
    return found, list(out.values())


def main() -> None:
    """Measure, print, and keep as JSON where asked to."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, nargs="+", default=[1_000, 50_000])
    parser.add_argument("--rates", type=float, nargs="*", default=[20.0], help="beside all at once; 1/s")
    parser.add_argument(
        "--peer-python", action="append", default=[], metavar="NAME=PYTHON", help="an interpreter that has it"
    )
    parser.add_argument("--limit-seconds", type=float, default=600.0, help="for a process")
    parser.add_argument("--json", type=Path, help="write every round's figures there")
    wanted = parser.parse_args()
    given = dict(entry.split("=", 1) for entry in wanted.peer_python)
    if unknown := given.keys() - {peer.name for peer in OTHERS}:
        parser.error(f"no adapter for {', '.join(sorted(unknown))}")
    pythons: dict[Peer, str] = {}
    for peer in (OURS, STEPS, SIMPY, *OTHERS):
        python = given.get(peer.name, sys.executable)
        if has := version(python, peer.name):
            pythons[peer] = python
            sys.stdout.write(f"{peer.label}: {peer.name} {has}\n")
        else:
            where = "the interpreter given" if peer.name in given else "this interpreter; see --peer-python"
            sys.stdout.write(f"{peer.label}: skipped, {peer.name} is not installed in {where}\n")
    cases = [Case(count, rate) for count in wanted.requests for rate in (None, *wanted.rates)]
    busy = [os.getloadavg()[0]]
    found, left_out = measure(pythons, cases, wanted.rounds, wanted.limit_seconds)
    busy.append(os.getloadavg()[0])
    sys.stdout.write(f"{wanted.rounds} rounds; load average {busy[0]:.1f} before and {busy[1]:.1f} after\n")
    for line in left_out:
        sys.stdout.write(line + "\n")
    for case, rounds in found.items():
        sys.stdout.write("\n" + table(case, rounds))
    if wanted.json:
        kept = [
            {"case": str(case), "simulator": peer.label, "rounds": [vars(speed) for speed in speeds]}
            for case, rounds in found.items()
            for peer, speeds in rounds.items()
        ]
        wanted.json.write_text(
            json.dumps({"load": busy, "left_out": left_out, "cases": kept}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
