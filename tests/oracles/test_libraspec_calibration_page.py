"""The study's document against rounds worked out again from it alone, and the page that it makes."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from math import floor, prod

import pytest

from simspec.compare.asked import Asked
from simspec.compare.libraspec.calibration import study
from simspec.cost.models import AffineCost
from simspec.report.libraspec import calibration as section
from simspec.report.parts import Grid, Picture
from simspec.report.style import drawing
from tests.toy import LOOKUP, MIDDLE, SMALL, TARGET, Setting, Toy

ASKED = Asked(batches=(1,), draws=10, seed=2)
RATIOS = {SMALL: 0.05, MIDDLE: 0.3, LOOKUP: 0.0}
COSTS = [
    AffineCost("slow", "SYNTHETIC", TARGET, 2e-3, 1e-4, 1e-7, 0.0, RATIOS),
    AffineCost("small alone", "SYNTHETIC", TARGET, 4e-3, 1e-5, 0.0, 1e-4, {SMALL: 0.02}),
]


def quiet(_: str) -> None: ...


@pytest.fixture(scope="module")
def found():
    trace = Toy(Setting(seed=9, prompts=10, output_tokens=24, block_length=24)).trace()
    return trace, study(trace, COSTS, ASKED, quiet)


def speed(p: list[Fraction], d: int, fixed: int, slope: int) -> Fraction:
    """(1 + S_1 + .. + S_d) / T(d), tokens a second."""
    tokens = 1 + sum(prod(p[:j]) for j in range(1, d + 1))
    return tokens * 10**6 / Fraction(fixed + slope * d)


def printed(q: list[Fraction], alpha: Fraction, n: int, longest: int) -> int:
    """Algorithm 1, written down once more."""
    d = n
    while d < longest:
        e = min(floor(alpha * sum(prod(q[i - 1 : j]) for j in range(i, d + 1)) + i) for i in range(1, d + 1))
        if e <= d:
            return e
        d = e
    return d


def test_examples_can_be_worked_out_from_the_document(found):
    seen = set()
    for cost in found[1]["acting"].values():
        for drafter in cost["drafters"].values():
            line = drafter["theory"]
            for e in line["examples"]:
                q, p = ([Fraction(str(x)) for x in e[k]] for k in ("q", "p"))
                speeds = [
                    speed(p, e[k], line["fixed_us"], line["per_place_us"]) for k in ("length_q", "length_p")
                ]
                assert [e["speed_q"], e["speed_p"]] == [float(s) for s in speeds]
                assert e["lost"] == float(100 * (1 - speeds[0] / speeds[1])) > 0
                seen.add(e["rule"])
                if e["rule"] in ("libraspec", "libraspec-n1"):
                    given = e["parameters"]
                    alpha = Fraction(str(given["alpha"]))
                    for told, length in ((q, e["length_q"]), (p, e["length_p"])):
                        assert printed(told, alpha, given["block"], given["longest"]) == length
                if e["rule"] == "exact-marginal":
                    for told, length in ((q, e["length_q"]), (p, e["length_p"])):
                        every = [
                            speed(told, d, line["fixed_us"], line["per_place_us"])
                            for d in range(len(told) + 1)
                        ]
                        # An affine cost has one peak, so the first stop is the best length.
                        assert every.index(max(every)) == length
    assert {"libraspec-n1", "exact-marginal"} <= seen


def test_the_document_is_the_same_on_two_processes_and_is_plain(found):
    trace, document = found
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert study(trace, COSTS, replace(ASKED, jobs=2), quiet) == document


def test_what_is_priced_and_what_is_drafted(found):
    trace, document = found
    assert LOOKUP not in document["drafters"]
    assert set(document["acting"]["slow"]["drafters"]) == {SMALL, MIDDLE}
    assert set(document["acting"]["small alone"]["drafters"]) == {SMALL}
    for drafter in document["drafters"].values():
        every = {c["places"]: c for c in drafter["cells"] if (c["starts"], c["task"]) == ("every", "all")}
        assert every["1"]["tokens"] <= len(trace.tokens)
        assert every["all"]["tokens"] == sum(c["tokens"] for p, c in every.items() if p != "all")
        for cell in drafter["cells"]:
            assert cell["bias"][0] == pytest.approx(cell["confidence"] - cell["accepted"], abs=2e-4)
            parts = cell["miscalibration"] - cell["discrimination"] + cell["uncertainty"]
            assert cell["brier"][0] == pytest.approx(parts, abs=2e-4)


def test_the_page_has_every_part_and_sentences_of_these_numbers(found, tmp_path):
    document = found[1]
    with drawing():
        shown = list(section.parts(document, tmp_path, "SYNTHETIC behaviour"))
    pictures = [p for p in shown if isinstance(p, Picture)]
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(p.file for p in pictures)
    assert all(p.file.startswith("calibration-") for p in pictures)
    assert len(pictures) == 4
    assert all("SYNTHETIC" in p.caption for p in shown)
    for grid in (p for p in shown if isinstance(p, Grid)):
        assert grid.rows
        assert all(len(row) == len(grid.header) for row in grid.rows)
    said = section.findings(document)
    bias = next(c for c in document["drafters"][SMALL]["cells"] if c["places"] == "all")["bias"]
    assert f"{SMALL} {bias[0]:.3f}" in said[0]
    worst = max(
        e["lost"]
        for c in document["acting"].values()
        for d in c["drafters"].values()
        for e in d["theory"]["examples"]
        if e["rule"] == "exact-marginal"
    )
    assert f"forgoes {worst:.1f}%" in said[-1]


def test_a_trace_without_a_priced_drafter_still_has_scores(found, tmp_path):
    trace, _ = found
    document = study(trace, [], replace(ASKED, draws=2), quiet)
    with drawing():
        shown = list(section.parts(document, tmp_path, "SYNTHETIC behaviour"))
    assert len([p for p in shown if isinstance(p, Picture)]) == 2
    assert len(section.findings(document)) == 3
    alone = replace(trace, drafters={LOOKUP: trace.drafters[LOOKUP]})
    empty = study(alone, COSTS, replace(ASKED, draws=2), quiet)
    assert list(section.parts(empty, tmp_path, "SYNTHETIC behaviour")) == []
    assert len(section.findings(empty)) == 1
