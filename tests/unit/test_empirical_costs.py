"""One peak and convexity on measured costs: worked cases, and a second road by linear programming."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from simspec.claims.empirical.finding import Finding
from simspec.claims.empirical.lengths import Runs, dips, drawn_dips, first_peak_loss, one_peak
from simspec.claims.empirical.setting import Setting
from simspec.claims.empirical.timings import Curve, _curve, curves
from simspec.claims.empirical.verification import bumps, drawn_bumps, shape
from simspec.errors import BadInput
from simspec.streams import stream
from tests.toy import Setting as ToySetting
from tests.toy import Toy

WIDTHS = [1, 2, 3, 4, 6, 8, 12, 17, 26]


def curve(seconds: list[float], widths: list[int] = WIDTHS, noise: float = 0.0, draws: int = 50) -> Curve:
    median = np.array(seconds)
    luck = stream(0, "test", "curve").normal(1.0, noise, (draws, len(widths)))
    return Curve(np.array(widths), median, median * luck, 3)


def floats(seconds: list[Fraction]) -> list[float]:
    return [float(s) for s in seconds]


# The triples.


def test_bump_by_hand() -> None:
    # Chord from (1, 2) to (3, 4) is 3 at 2; 5 is above it: (5 - 3) / (5 + 3).
    assert bumps([1, 2, 3], [Fraction(2), Fraction(5), Fraction(4)]) == [(Fraction(1, 4), (0, 1, 2))]
    # On uneven widths: chord from (1, 1) to (5, 5) is 2 at 2; 1 is below it.
    assert bumps([1, 2, 5], [Fraction(1), Fraction(1), Fraction(5)]) == [(Fraction(-1, 3), (0, 1, 2))]


def test_a_line_has_no_bumps() -> None:
    told = bumps(WIDTHS, [Fraction(7) + 3 * w for w in WIDTHS])
    assert {size for size, _ in told} == {Fraction(0)}
    assert len(told) == 84  # 9 choose 3


def least_error(widths: list[int], seconds: list[float], *, convex: bool) -> float:
    """The second road: the least e such that a line (or a convex curve) is within e of every point."""
    n = len(widths)
    t, w = np.array(seconds), np.array(widths, dtype=float)
    if convex:  # variables: the curve's n values, then e
        points = np.eye(n)
        rows = []
        for i in range(n - 2):
            share = (w[i + 1] - w[i]) / (w[i + 2] - w[i])
            row = np.zeros(n + 1)
            row[i], row[i + 1], row[i + 2] = -(1 - share), 1.0, -share
            rows.append(row)
        bends = np.array(rows)
    else:  # variables: intercept, slope, e
        points = np.stack([np.ones(n), w], axis=1)
        bends = np.zeros((0, 3))
    up = np.column_stack([points, -t])
    down = np.column_stack([-points, -t])
    found = linprog(
        np.r_[np.zeros(points.shape[1]), 1.0],
        A_ub=np.concatenate([up, down, bends]),
        b_ub=np.concatenate([t, -t, np.zeros(len(bends))]),
        bounds=[(None, None)] * points.shape[1] + [(0, None)],
    )
    assert found.fun is not None, found.message
    return float(found.fun)


@given(st.lists(st.integers(1, 400), min_size=3, max_size=7))
def test_the_worst_triple_is_the_least_error_of_a_fit(ms: list[int]) -> None:
    widths = WIDTHS[: len(ms)]
    told = [size for size, _ in bumps(widths, [Fraction(m) for m in ms])]
    seconds = [float(m) for m in ms]
    assert float(max(abs(s) for s in told)) == pytest.approx(
        least_error(widths, seconds, convex=False), abs=1e-7
    )
    assert float(max(*told, Fraction(0))) == pytest.approx(
        least_error(widths, seconds, convex=True), abs=1e-7
    )


@given(st.lists(st.integers(1, 400), min_size=3, max_size=7))
def test_drawn_bumps_are_the_exact_ones(ms: list[int]) -> None:
    widths = WIDTHS[: len(ms)]
    exact = [float(size) for size, _ in bumps(widths, [Fraction(m) for m in ms])]
    drawn = drawn_bumps(curve([float(m) for m in ms], widths, draws=2))
    assert drawn == pytest.approx(np.array([exact, exact]), abs=1e-12)


# The verdicts on shapes.


@pytest.mark.parametrize(
    ("seconds", "convex", "affine"),
    [
        ([8.0 + 2.0 * w for w in WIDTHS], "holds", "holds"),
        ([8.0 + w * w for w in WIDTHS], "holds", "refuted"),
        # A bump of a twentieth of a percent: no longer convex, still near a line.
        ([8.0 + 2.0 * w + (0.01 if w == 6 else 0.0) for w in WIDTHS], "refuted", "holds"),
        ([8.0 * -(-w // 8) for w in WIDTHS], "refuted", "refuted"),  # padding to 8
    ],
)
def test_shapes(seconds: list[float], convex: str, affine: str) -> None:
    found = shape({(2, 128): curve(seconds)}, "float32", 2)
    assert [f.verdict for f in found] == [convex, affine]
    assert found[0].subject == "float32, batch 2"


def test_one_bad_context_is_enough_and_other_batches_do_not_count() -> None:
    line, steps = [8.0 + 2.0 * w for w in WIDTHS], [8.0 * -(-w // 8) for w in WIDTHS]
    grid = {(1, 128): curve(line), (1, 512): curve(steps), (2, 128): curve(line)}
    assert [f.verdict for f in shape(grid, "f", 1)] == ["refuted", "refuted"]
    assert "context 512" in shape(grid, "f", 1)[0].note
    assert [f.verdict for f in shape(grid, "f", 2)] == ["holds", "holds"]


def test_noise_shows_in_the_draws() -> None:
    """A line with noise is refuted by chance in many draws, and rarely by the same bump."""
    found, affine = shape({(1, 128): curve([8.0 + 2.0 * w for w in WIDTHS], noise=0.01)}, "f", 1)
    assert affine.numbers["draws_refuting"] == 0.0  # 1% of noise stays within 5%
    assert found.verdict == "holds"
    assert found.numbers["draws_refuting"] > 0.9
    assert found.numbers["draws_with_the_same_bump"] < 0.9


def test_two_widths_have_no_shape() -> None:
    found = shape({(1, 128): curve([1.0, 2.0], [1, 2])}, "f", 1)
    assert {f.verdict for f in found} == {"not decidable here"}


# One peak.


def test_dips_by_hand() -> None:
    # 2 lies below 3 and 4: the lesser of them is half above it.
    assert dips([Fraction(3), Fraction(2), Fraction(4), Fraction(1)]) == [0, Fraction(1, 2), 0, 0]
    assert dips([Fraction(1), Fraction(2), Fraction(2), Fraction(1)]) == [0, 0, 0, 0]  # a flat top
    assert first_peak_loss([Fraction(3), Fraction(2), Fraction(4)]) == Fraction(1, 3)
    assert first_peak_loss([Fraction(1), Fraction(3), Fraction(2)]) == 0


@given(st.lists(st.integers(1, 30), min_size=1, max_size=9))
def test_drawn_dips_are_the_exact_ones(values: list[int]) -> None:
    exact = [float(d) for d in dips([Fraction(v) for v in values])]
    assert drawn_dips(np.array([values], dtype=float))[0] == pytest.approx(exact)


def runs_of(rate: float, longest: int = 25, prompts: int = 10, starts: int = 400) -> Runs:
    accepted = np.tile(np.round(starts * rate ** np.arange(1, longest + 1)), (prompts, 1))
    return Runs(accepted, np.full(prompts, float(starts)))


def peak(verify: list[float], draft: list[float], *, lookup: bool = False, rate: float = 0.8) -> Finding:
    counts = stream(0, "test", "peak").multinomial(10, np.full(10, 0.1), size=40).astype(float)
    grid = {(1, 64): curve(verify, draws=40)}, {(1, 64): curve(draft, draws=40)}
    return one_peak(runs_of(rate), *grid, "d", 1, counts, lookup=lookup)


def test_affine_cost_has_one_peak() -> None:
    """L2: with any survival; where it is, by hand: 1 + .8 + .64 over 10 + 2 (2 + 1) beats its neighbours."""
    found = peak([10.0 + w for w in WIDTHS], [2.0] * 9)
    assert found.verdict == "holds"
    assert found.value.value == 0.0
    assert found.numbers["draws_refuting"] == 0.0


def test_staircase_cost_has_several() -> None:
    found = peak([10.0 * -(-w // 4) for w in WIDTHS], [0.1] * 9, rate=0.95)
    assert found.verdict == "refuted"
    assert found.numbers["draws_with_the_same_dip"] == 1.0
    # Speedup of 3 drafts (width 4) and of 5 (width 6), with S_j = .95^j rounded to 400ths.
    told = found.numbers["contexts"]["64"]
    s = [round(400 * 0.95**j) / 400 for j in range(6)]
    three, five = told["lengths"].index(3), told["lengths"].index(5)
    assert told["speedup"][three] == pytest.approx(sum(s[:4]) * 10 / (0.3 + 10))
    assert told["speedup"][five] == pytest.approx(sum(s[:6]) * 10 / (0.5 + 20))


def test_a_look_up_is_paid_once_and_in_between_is_interpolated() -> None:
    found = peak([10.0] * 9, [float(w) for w in WIDTHS], lookup=True)
    told = found.numbers["contexts"]["64"]
    # Length 0 and 1 cost a look-up of width 1; length 5 one of 5, between 4 and 6.
    assert told["speedup"][0] == pytest.approx(10 / 11)
    assert told["speedup"][told["lengths"].index(1)] == pytest.approx(1.8 * 10 / 11)
    s = sum(round(400 * 0.8**j) / 400 for j in range(6))
    assert told["speedup"][told["lengths"].index(5)] == pytest.approx(s * 10 / 15)


def test_texts_too_short_cannot_be_priced() -> None:
    none = Runs(np.zeros((10, 25)), np.zeros(10))
    grid = {(1, 64): curve([10.0] * 9)}
    found = one_peak(none, grid, grid, "d", 1, np.ones((4, 10)), lookup=False)
    assert found.verdict == "not decidable here"


# The table.


def test_repetitions_are_drawn_together() -> None:
    """Widths that always move together have draws that do: the median of (r, 2 r, 3 r)."""
    rows = [{"new_tokens": w, "repetition": r, "seconds": w * (1.0 + r)} for w in (1, 2, 3) for r in range(5)]
    found = _curve(pd.DataFrame(rows), stream(0, "test", "together"), 200)
    assert found.widths.tolist() == [1, 2, 3]
    assert found.median.tolist() == [3.0, 6.0, 9.0]
    assert found.draws[:, 1] == pytest.approx(2 * found.draws[:, 0])
    assert set(found.draws[:, 0]) <= {1.0, 2.0, 3.0, 4.0, 5.0}
    assert len(set(found.draws[:, 0])) > 1
    assert found.repetitions == 5


def test_forwards_that_take_no_time_are_refused() -> None:
    trace = Toy(ToySetting()).trace()
    at = trace.latency.index[trace.latency["model"] == trace.target][3]
    trace.latency.loc[at, "seconds"] = 0.0
    row = trace.latency.loc[at]
    asked = Setting(trace, np.ones((2, 3)), 10, 0)
    with pytest.raises(BadInput, match=f"'{row['model']}'.*batch {row['batch']}"):
        curves(asked, row["model"], row["dtype"])
