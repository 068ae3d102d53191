"""The comparison with other simulators: what it reads, whom it leaves out, which way its ratios go."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks import bench_peers
from benchmarks.bench_peers import OURS, SIMPY, STEPS, Case, Peer, Speed, Unusable

COUNTS = {"steps": 10, "events": 20}


def call(tokens: int, seconds: float) -> dict[str, object]:
    return {
        "wall_seconds": 2 * seconds,
        "cpu_seconds": seconds,
        "output_tokens": tokens,
        "simulated_seconds": 9.0,
        "counts": COUNTS,
    }


def printed(*calls: dict[str, object]) -> str:
    """As simulators do: talk first, and something in braces at that."""
    return 'INFO {"calls": 3} starting\n' + json.dumps({"calls": calls}) + "\n"


def test_speed_is_the_median_call_after_whatever_was_said():
    speed = bench_peers.read(printed(call(128, 1.0), call(128, 4.0), call(128, 2.0)), 128)
    assert (speed.cpu, speed.wall, speed.simulated_seconds) == (64.0, 32.0, 9.0)


@pytest.mark.parametrize(
    ("output", "why"),
    [
        (printed(call(128, 1.0), call(127, 1.0)), "tokens"),
        (printed(), "tokens"),
        ("INFO done\n", "ends with"),
        ("3\n", "ends with"),
        ("", "ends with"),
    ],
)
def test_less_work_or_no_figures_is_no_speed(output: str, why: str):
    with pytest.raises(Unusable, match=why):
        bench_peers.read(output, 128)


def test_who_fails_is_left_out_and_said_and_the_others_stay(tmp_path: Path):
    good, lazy, broken = (tmp_path / f"{name}.py" for name in ("good", "lazy", "broken"))
    good.write_text(f"print({json.dumps({'calls': [call(3 * 128, 1.0)]})!r})")
    lazy.write_text(f"print({json.dumps({'calls': [call(3 * 127, 1.0)]})!r})")
    broken.write_text("raise SystemExit('no such scheduler')")
    peers = [Peer(path.stem, path.stem, str(path)) for path in (lazy, good, broken)]
    case = Case(3, None)
    found, left_out = bench_peers.measure(dict.fromkeys(peers, sys.executable), [case], 2, 60.0)
    assert {peer.name: len(speeds) for peer, speeds in found[case].items()} == {"good": 2}
    assert sorted(line.partition(" is ")[0] for line in left_out) == ["broken", "lazy"]
    assert any("no such scheduler" in line for line in left_out)


def test_what_is_not_installed_has_no_version():
    assert bench_peers.version(sys.executable, "simpy")
    assert bench_peers.version(sys.executable, "no-such-simulator") is None


def test_ratios_are_ours_over_theirs_round_by_round():
    slow = Peer("slow", "slow one", "")
    rounds = {
        OURS: [Speed(4e6, 1e6, 9.0, COUNTS), Speed(8e6, 1e6, 9.0, COUNTS)],
        STEPS: [Speed(2e6, 1e6, 9.0, COUNTS)] * 2,
        SIMPY: [Speed(1e6, 1e6, 9.0, {})] * 2,
        slow: [Speed(2e6, 1e6, 9.0, COUNTS), Speed(2e6, 1e6, 9.0, COUNTS)],
    }
    text = bench_peers.table(Case(10, None), rounds)
    line = next(line for line in text.splitlines() if "slow one" in line)
    assert [cell.strip() for cell in line.split("|")][4] == "3.00 (2.00 to 4.00)"
    # 1,280 tokens for 20 events at a million events a second are 64 million a second.
    assert "15.62 events per 1,000 tokens; as many bare timeouts would allow 64 Mtoken/s" in text
