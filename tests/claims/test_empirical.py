"""The claims on recorded data, on data with a known truth.

Each test is shown to alarm rarely where its null holds, also where positions of a text depend on each other
(unless the null says that they do not), and to find a clear departure; then all of them together, as one
family, on whole made-up traces; then on the committed trace.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats

from simspec.claims.empirical.blocks import one_rate, shuffled_runs, summed_runs
from simspec.claims.empirical.check import check_trace, document, summary
from simspec.claims.empirical.confidence import along_block, calibration
from simspec.claims.empirical.finding import Finding
from simspec.claims.empirical.levels import Level, independence, level, similarity
from simspec.claims.empirical.requests import same_rate, same_throughout
from simspec.claims.empirical.resample import bootstrap_counts
from simspec.claims.empirical.setting import Firsts, Places, members, places
from simspec.claims.empirical.texts import by_category, trend
from simspec.streams import stream
from simspec.traces.drafters import DrafterIndex
from simspec.traces.index import Trace, load_trace
from tests.toy import MIDDLE, SMALL, TARGET, Setting, Toy

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]

COMMITTED = Path(__file__).resolve().parents[2] / "traces" / "smollm2-cpu"

PROMPTS, TOKENS = 30, 40
RESAMPLES, DRAWS = 199, 20
CASES, CLEAR_CASES = 300, 40
# With a true rate of .05 more rejections than this come once in 10,000 runs.
MOST = int(stats.binom.ppf(0.9999, CASES, 0.05))


# What is made up: flags of shape (P, T), and what the questions take.


def clumps(random: np.random.Generator, rate: float | Floats, stay: float = 0.7) -> Flags:
    """Stationary in a text, and dependent: each place repeats the one before with chance ``stay``."""
    fresh = random.random((PROMPTS, TOKENS)) < np.broadcast_to(np.reshape(rate, (-1, 1)), (PROMPTS, 1))
    keep = random.random((PROMPTS, TOKENS)) < stay
    found = fresh.copy()
    for t in range(1, TOKENS):
        found[:, t] = np.where(keep[:, t], found[:, t - 1], fresh[:, t])
    return found


def independent(random: np.random.Generator, rate: float | Floats) -> Flags:
    return clumps(random, rate, stay=0.0)


def unlike(random: np.random.Generator) -> Floats:
    """Rates that differ from prompt to prompt, shape (P,)."""
    return random.beta(4.0, 3.0, PROMPTS)


def firsts_of(accepted: Flags, confidence: Floats | None = None) -> Firsts:
    size = accepted.size
    return Firsts(
        flat=np.arange(size),
        prompt=np.repeat(np.arange(PROMPTS), TOKENS),
        position=np.tile(np.arange(TOKENS), PROMPTS),
        accepted=accepted.ravel(),
        confidence=(np.full(size, 0.5) if confidence is None else confidence.ravel()).astype(np.float64),
    )


def places_of(accepted: Flags, confidence: Floats | None = None, longest: int = 5) -> Places:
    """Blocks of an autoregressive drafter: place j of the block from t is the first draft from t + j."""
    sure = np.full(accepted.shape, 0.5) if confidence is None else confidence
    tried, good, told = (np.zeros((PROMPTS, longest)) for _ in range(3))
    for j in range(longest):
        for t in range(TOKENS - j):
            reached = accepted[:, t : t + j].all(axis=1)
            tried[:, j] += reached
            good[:, j] += reached & accepted[:, t + j]
            told[:, j] += reached * sure[:, t + j]
    return Places(tried, good, told)


@dataclass(frozen=True)
class Case:
    """A question and how its data are made, where it is true and where it is clearly not."""

    name: str
    null: Callable[[np.random.Generator], Finding]
    departure: Callable[[np.random.Generator], Finding]


def luck_of(random: np.random.Generator) -> tuple[Floats, int, np.random.Generator]:
    return bootstrap_counts(PROMPTS, DRAWS, random), RESAMPLES, random


def ask_trend(random: np.random.Generator, drift: float) -> Finding:
    steady = clumps(random, unlike(random))
    late = random.random(steady.shape) < drift * np.arange(TOKENS) / TOKENS
    return trend(firsts_of(steady | late), "d", *luck_of(random))


def ask_category(random: np.random.Generator, apart: float) -> Finding:
    category = np.array(["a", "b", "c"])[np.arange(PROMPTS) % 3]
    rate = np.clip(random.beta(4.0, 3.0, PROMPTS) * 0.7 + apart * (category == "a"), 0.0, 1.0)
    return by_category(firsts_of(clumps(random, rate)), category, "d", *luck_of(random))


def ask_level(random: np.random.Generator, number: int, shared: float, past: float) -> Finding:
    """``shared``: how often the two verdicts are one; ``past``: agreement where both levels refuse."""
    x12, x23 = clumps(random, 0.6), clumps(random, 0.5)
    x23 = np.where(random.random(x12.shape) < shared, x12, x23)
    x13 = (x12 & x23) | (~x12 & ~x23 & (random.random(x12.shape) < past))
    prompt = np.repeat(np.arange(PROMPTS), TOKENS)
    sums = level(prompt, x12.ravel(), x23.ravel(), x13.ravel(), PROMPTS)
    return independence(sums, "d > m > t", *luck_of(random))[number]


def ask_calibration(random: np.random.Generator, over: float) -> Finding:
    """Confidences that stay alike for a while in a text."""
    sure = np.clip(np.repeat(random.random((PROMPTS, TOKENS // 5)), 5, axis=1), 0.02, 0.98)
    accepted = random.random(sure.shape) < sure * (1.0 - over)
    return calibration(firsts_of(accepted, sure), "d", *luck_of(random))


def ask_gap(random: np.random.Generator, more: float) -> Finding:
    """A confidence that is off by .1 everywhere, and by ``more`` after an accepted draft."""
    sure = 0.5 + 0.4 * random.random((PROMPTS, TOKENS))
    accepted = random.random(sure.shape) < sure - 0.1
    before = np.concatenate([np.zeros((PROMPTS, 1), dtype=bool), accepted[:, :-1]], axis=1)
    return along_block(places_of(accepted, sure + more * before), "d", *luck_of(random))


def ask_one_rate(random: np.random.Generator, rate: float | Floats, stay: float = 0.0) -> Finding:
    return one_rate(places_of(clumps(random, rate, stay)), "d", *luck_of(random))


def ask_shuffled(random: np.random.Generator, stay: float) -> Finding:
    return shuffled_runs(list(clumps(random, unlike(random), stay)), 26, "d", *luck_of(random))


def ask_similarity(random: np.random.Generator, off: float) -> Finding:
    """Overlaps that last; agreement with just that chance, but for ``off``."""
    overlap = np.clip(np.repeat(random.random((PROMPTS, TOKENS // 5)), 5, axis=1), 0.1, 0.9)
    agrees = random.random(overlap.shape) < overlap + off
    prompt = np.repeat(np.arange(PROMPTS), TOKENS)
    return similarity(prompt, overlap.ravel(), agrees.ravel(), "a, b", *luck_of(random))


def ask_throughout(random: np.random.Generator, rate: float | Floats, stay: float) -> Finding:
    texts = np.full(PROMPTS, float(TOKENS))
    return same_throughout(firsts_of(clumps(random, rate, stay)), texts, "d", *luck_of(random))


CASES_BY_CLAIM = [
    Case("E3a", lambda r: ask_level(r, 0, 0.0, 0.0), lambda r: ask_level(r, 0, 0.0, 0.8)),
    Case("E3b", lambda r: ask_level(r, 1, 0.0, 0.0), lambda r: ask_level(r, 1, 0.4, 0.0)),
    # The product form can fail by agreement past the intermediate alone, which E3b does not look at.
    Case(
        "E3b, agreement past the intermediate",
        lambda r: ask_level(r, 1, 0.0, 0.8),
        lambda r: ask_level(r, 1, 0.4, 0.8),
    ),
    Case("E4a", lambda r: ask_calibration(r, 0.0), lambda r: ask_calibration(r, 0.3)),
    Case("E4b", lambda r: ask_gap(r, 0.0), lambda r: ask_gap(r, 0.15)),
    Case("E5a", lambda r: ask_trend(r, 0.0), lambda r: ask_trend(r, 0.75)),
    Case("E5b", lambda r: ask_category(r, 0.0), lambda r: ask_category(r, 0.4)),
    Case("E6a", lambda r: ask_one_rate(r, 0.6), lambda r: ask_one_rate(r, 0.6, 0.5)),
    Case(
        "E6a, unlike requests",
        lambda r: ask_one_rate(r, 0.8),
        lambda r: ask_one_rate(r, np.repeat([0.3, 0.9], 15)),
    ),
    Case("E6b", lambda r: ask_shuffled(r, 0.0), lambda r: ask_shuffled(r, 0.5)),
    Case("E8", lambda r: ask_similarity(r, 0.0), lambda r: ask_similarity(r, 0.1)),
    Case(
        "E9a",
        lambda r: same_rate(firsts_of(independent(r, 0.6)), "d", *luck_of(r)),
        lambda r: same_rate(firsts_of(independent(r, np.repeat([0.45, 0.75], 15))), "d", *luck_of(r)),
    ),
    Case(
        "E9b",
        lambda r: ask_throughout(r, 0.6, 0.7),
        lambda r: ask_throughout(r, np.repeat([0.3, 0.9], 15), 0.3),
    ),
]


def named(case: Case) -> str:
    return case.name


def alarms(ask: Callable[[np.random.Generator], Finding], name: str, cases: int) -> int:
    """Cases in which the p value is at most .05."""
    found = 0
    for case in range(cases):
        finding = ask(stream(0, "test", "empirical", name, case))
        assert finding.tested is not None
        found += finding.tested.p <= 0.05
    return found


@pytest.mark.parametrize("case", CASES_BY_CLAIM, ids=named)
def test_alarms_rarely_where_the_claim_is_true(case: Case) -> None:
    """300 made-up data sets: at most as many rejections at .05 as chance gives 9,999 times in 10,000."""
    assert alarms(case.null, f"{case.name} true", CASES) <= MOST


@pytest.mark.parametrize("case", CASES_BY_CLAIM, ids=named)
def test_finds_a_clear_departure(case: Case) -> None:
    assert alarms(case.departure, f"{case.name} false", CLEAR_CASES) >= 0.9 * CLEAR_CASES


def test_clumps_alone_are_not_taken_for_a_trait_of_the_request() -> None:
    """Dependence of neighbours makes rates of texts vary more than chance (E9a); E9b is not taken in."""

    def clumped(random: np.random.Generator) -> Finding:
        return same_rate(firsts_of(clumps(random, 0.6, 0.8)), "d", *luck_of(random))

    assert alarms(clumped, "E9a clumps", CLEAR_CASES) >= 0.9 * CLEAR_CASES
    assert alarms(lambda r: ask_throughout(r, 0.6, 0.8), "E9b clumps", CASES) <= MOST


def test_what_is_estimated_is_what_was_put_in() -> None:
    """Values and intervals against the truth, with many draws."""
    random = stream(0, "test", "empirical", "values")
    counts = bootstrap_counts(PROMPTS, 500, random)
    even = np.repeat([0.45, 0.75], 15)
    spread = same_rate(firsts_of(independent(random, even)), "d", counts, RESAMPLES, random)
    assert spread.numbers["between_prompts"] == pytest.approx(0.15, abs=0.05)
    off = np.full((PROMPTS, TOKENS), 0.5)
    found = similarity(
        np.repeat(np.arange(PROMPTS), TOKENS),
        off.ravel(),
        (random.random(off.shape) < 0.6).ravel(),
        "a, b",
        counts,
        RESAMPLES,
        random,
    )
    assert found.value.low is not None
    assert found.value.high is not None
    assert found.value.low < 0.1 < found.value.high
    rising = random.random((PROMPTS, TOKENS)) < 0.3 + 0.01 * np.arange(TOKENS)
    slope = trend(firsts_of(rising), "d", counts, RESAMPLES, random).value
    assert slope.value == pytest.approx(1.0, abs=0.3)  # .01 a token is 1 per 100 tokens
    assert slope.low is not None
    assert slope.low > 0


def test_confidence_that_is_right_on_average_alone_is_found() -> None:
    """.2 and .8 in turn, and half of both accepted: no bias over all, an error of .3 in every bin."""
    random = stream(0, "test", "empirical", "bins")
    sure = np.tile([0.2, 0.8], (PROMPTS, TOKENS // 2))
    accepted = random.random(sure.shape) < 0.5
    found = calibration(firsts_of(accepted, sure), "d", *luck_of(random))
    assert found.value.value == pytest.approx(0.3, abs=0.03)
    assert found.tested is not None
    assert found.tested.p <= 0.01
    assert found.numbers["mean_confidence"] == pytest.approx(found.numbers["accepted_share"], abs=0.05)
    assert found.numbers["ece_if_calibrated"]["high"] < 0.05


def test_summed_runs_by_hand() -> None:
    # 1 1 1 0 1: runs 3 2 1 0 1; at most 2: 2 2 1 0 1. All refused: none.
    flags = np.array([[1, 1, 1, 0, 1], [0, 0, 0, 0, 0]], dtype=bool).T
    assert summed_runs(flags, 26).tolist() == [7, 0]
    assert summed_runs(flags, 2).tolist() == [6, 0]


def test_levels_that_are_independent_in_every_prompt_leave_nothing_to_test() -> None:
    """Scores see the covariance alone: in every prompt half of what the intermediate accepts goes on.

    Without the terms for the estimated rates, prompts that accept more would pass for evidence.
    """
    accepted = np.arange(4.0, 17.0, 2.0)
    sums = Level(
        places=np.full(7, 20.0),
        x12=accepted,
        x23=np.full(7, 10.0),
        x13=accepted / 2,
        x12_and_23=accepted / 2,
    )
    random = stream(0, "test", "empirical", "levels")
    for found in independence(sums, "d > m > t", bootstrap_counts(7, 10, random), 99, random):
        assert found.verdict == "not decidable here"


@pytest.mark.parametrize(
    "ask",
    [
        lambda a, random: trend(firsts_of(a), "d", *luck_of(random)),
        lambda a, random: same_rate(firsts_of(a), "d", *luck_of(random)),
        lambda a, random: shuffled_runs(list(a), 26, "d", *luck_of(random)),
        lambda a, random: one_rate(places_of(a), "d", *luck_of(random)),
        lambda a, random: by_category(firsts_of(a), np.tile(["a", "b"], 15), "d", *luck_of(random)),
        lambda a, random: same_throughout(
            firsts_of(a), np.full(PROMPTS, float(TOKENS)), "d", *luck_of(random)
        ),
    ],
    ids=["E5a", "E9a", "E6b", "E6a", "E5b", "E9b"],
)
@pytest.mark.parametrize("fate", [True, False])
def test_where_all_drafts_have_one_fate_nothing_is_decided(
    ask: Callable[[Flags, np.random.Generator], Finding], fate: bool
) -> None:
    found = ask(np.full((PROMPTS, TOKENS), fate), stream(0, "test", "empirical", "fate"))
    assert found.verdict == "not decidable here"
    assert found.note


# Whole traces.


def block_runs(flags: Flags, depth: int) -> NDArray[np.int64]:
    """Accepted run from every place of a text, at most ``depth`` and the text's end."""
    run = np.zeros(len(flags) + 1, dtype=np.int64)
    for t in range(len(flags) - 1, -1, -1):
        run[t] = (run[t + 1] + 1) * flags[t]
    return np.minimum(run[:-1], depth)


def made_up_trace(random: np.random.Generator, toy: Trace, rates: Sequence[float]) -> Trace:
    """Two drafters of tokens only, and nothing else true of them than their confidences say.

    Everything that the tests ask holds: confidences are drawn anew for every place, acceptances with them,
    and the intermediate's agreement with both sides independently of each other, but that the target
    accepts what both agree on. ``rates`` are added to every confidence, by prompt.
    """
    prompt = np.repeat(np.arange(PROMPTS), TOKENS)
    position = np.tile(np.arange(TOKENS), PROMPTS)
    shape, depth = (PROMPTS, TOKENS), 6
    sure = {
        "12": np.full(shape, 0.7),
        MIDDLE: np.clip(random.uniform(0.4, 0.8, shape) + np.reshape(rates, (-1, 1)), 0.0, 1.0),
    }
    x12, x23 = (random.random(shape) < sure[k] for k in ("12", MIDDLE))
    sure[SMALL] = sure["12"] * sure[MIDDLE]
    flags = {SMALL: x12 & x23, MIDDLE: x23}
    ahead = np.minimum(np.arange(TOKENS)[:, None] + np.arange(depth), TOKENS - 1)
    drafters = {
        name: DrafterIndex(
            length=np.full(prompt.size, depth),
            ended=np.zeros(prompt.size, dtype=bool),
            confidence=sure[name][:, ahead].reshape(-1, depth).astype(np.float32),
            matched=np.concatenate([block_runs(f, depth) for f in flags[name]]),
            agreed={MIDDLE: np.concatenate([block_runs(f, depth) for f in x12])} if name == SMALL else {},
        )
        for name in (SMALL, MIDDLE)
    }
    pairs = pd.concat(
        pd.DataFrame(
            {
                "prompt_id": prompt,
                "position": position,
                "model_a": TARGET,
                "model_b": name,
                "tv": 1.0 - sure[name].ravel(),
                "argmax_agree": flags[name].ravel(),
            }
        )
        for name in (SMALL, MIDDLE)
    )
    prompts = pd.DataFrame(
        {"category": np.tile(["a", "b"], PROMPTS // 2), "output_tokens": np.full(PROMPTS, TOKENS)}
    )
    return replace(
        toy,
        prompts=prompts,
        latency=toy.latency.iloc[:0],
        pairs=pairs,
        tokens=np.zeros(prompt.size, dtype=np.int64),
        offsets=np.arange(PROMPTS + 1) * TOKENS,
        remaining=TOKENS - position,
        position=position,
        prompt=prompt,
        context=position + 1,
        owns={TARGET: np.ones(prompt.size, dtype=bool), MIDDLE: x23.ravel()},
        drafters=drafters,
    )


def quiet(_: str) -> None:
    pass


@pytest.fixture(scope="module")
def toy() -> Trace:
    return Toy(Setting(prompts=2, output_tokens=6)).trace()


def test_the_family_alarms_rarely_where_everything_is_true(toy: Trace) -> None:
    """Twenty true nulls a trace: any rejection at all in at most a twentieth of them, over 60 traces."""
    alarms, traces = 0, 60
    for case in range(traces):
        random = stream(0, "test", "empirical", "family", case)
        found = check_trace(made_up_trace(random, toy, [0.0] * PROMPTS), case, 0, quiet)
        # Two drafters: two of E3, four each of E4, E5, E6 and E9, two of E8.
        assert sum(f.tested is not None for f in found) == 20
        alarms += any(f.verdict == "rejected" for f in found)
    assert alarms <= stats.binom.ppf(0.9999, traces, 0.05)


def test_the_family_finds_what_is_wrong_and_nothing_else(toy: Trace) -> None:
    """Requests of unlike acceptance, and confidences that know of it: E9 goes, E6a may, nothing else does.

    The weaker drafter's rates lie less far apart, and its E9b may be missed. Levels stay independent, and
    calibration and SimScore right: requests are easy by X23 alone, and both numbers say so.
    """
    random = stream(0, "test", "empirical", "one wrong")
    rates = np.tile([0.2, 0.2, -0.2, -0.2], PROMPTS)[:PROMPTS]
    found = check_trace(made_up_trace(random, toy, rates.tolist()), 0, 50, quiet)
    gone = {(f.question.id, f.subject) for f in found if f.verdict == "rejected"}
    sure = {("E9a", MIDDLE), ("E9b", MIDDLE), ("E9a", SMALL)}
    assert sure <= gone <= sure | {("E6a", MIDDLE), ("E6a", SMALL), ("E9b", SMALL)}


def test_places_of_the_block_are_those_of_the_trace(toy: Trace) -> None:
    """Two roads to the counts by place: from the index, and from first drafts one by one."""
    random = stream(0, "test", "empirical", "places")
    trace = made_up_trace(random, toy, [0.0] * PROMPTS)
    first = (trace.drafters[MIDDLE].matched > 0).reshape(PROMPTS, TOKENS)
    sure = trace.drafters[MIDDLE].confidence[:, 0].astype(np.float64).reshape(PROMPTS, TOKENS)
    found = places(trace, MIDDLE)
    assert found.tried.shape[1] > 2
    wanted = places_of(first, sure, longest=found.tried.shape[1])
    assert found.tried.tolist() == wanted.tried.tolist()
    assert found.accepted.tolist() == wanted.accepted.tolist()
    assert found.confidence == pytest.approx(wanted.confidence)


def test_three_prompts_decide_nothing_by_flips() -> None:
    """The toy has three prompts: sign flips have four outcomes. Its costs are decided all the same."""
    found = check_trace(Toy(Setting()).trace(), 0, 20, quiet)
    verdicts: dict[str, set[str | None]] = {}
    for f in found:
        verdicts.setdefault(f.question.id, set()).add(f.verdict)
    for name in ("E3a", "E3b", "E4a", "E4b", "E5a", "E5b", "E6a", "E7", "E8", "E9b"):
        assert verdicts[name] == {"not decidable here"}
    assert verdicts["E1"] | verdicts["E2a"] <= {"holds", "refuted"}
    json.dumps(document(found, Toy(Setting()).trace(), 0, 20), allow_nan=False)


def test_confidence_that_means_nothing_is_found(tmp_path: Path) -> None:
    """The toy's confidences have nothing to do with acceptance, its TV nothing with agreement."""
    trace = Toy(Setting(prompts=24, output_tokens=20, order=3)).load(tmp_path / "toy")
    found = check_trace(trace, 0, 100, quiet)
    gone = {(f.question.id, f.subject) for f in found if f.verdict == "rejected"}
    assert ("E4a", MIDDLE) in gone
    assert ("E8", f"{TARGET}, {MIDDLE}") in gone


@pytest.fixture(scope="module")
def committed() -> Trace:
    return load_trace(COMMITTED)


@pytest.fixture(scope="module")
def told(committed: Trace) -> list[Finding]:
    return check_trace(committed, 0, 100, quiet)


def test_the_committed_trace_answers_every_question(committed: Trace, told: list[Finding]) -> None:
    written = json.loads(json.dumps(document(told, committed, 0, 100), allow_nan=False))
    names = "E1 E2a E2b E3a E3b E4a E4b E5a E5b E6a E6b E7 E8 E9a E9b"
    assert [s["id"] for s in written["summary"]] == names.split()
    tests = [c for c in written["claims"] if c["family"]]
    assert written["family"]["tests"] == len(tests) <= members(committed)
    assert written["resamples"] >= 2 * len(tests) / 0.05 - 1
    assert len({(c["id"], c["subject"]) for c in written["claims"]}) == len(written["claims"])
    for claim in tests:
        assert claim["p_adjusted"] >= claim["p_value"]
        assert (claim["verdict"] == "rejected") == (claim["p_adjusted"] <= 0.05)
        assert claim["n"] <= 56
        low, high = claim["interval"]
        assert low <= high
    for claim in written["claims"]:
        if not claim["family"]:
            assert claim["p_value"] is None
        if claim["id"][:2] in ("E1", "E2"):
            assert claim["verdict"] in ("holds", "refuted")
        else:
            assert claim["verdict"] not in ("holds", "refuted")


def test_the_same_seed_says_the_same(committed: Trace, told: list[Finding]) -> None:
    again = check_trace(committed, 0, 100, quiet)
    assert [replace(f, seconds=0.0) for f in again] == [replace(f, seconds=0.0) for f in told]
    assert summary(again) == summary(told)


def test_the_first_drafts_of_the_committed_trace_are_its_alphas(
    committed: Trace, told: list[Finding]
) -> None:
    """Two roads: alpha_13 of E3 and the argmax agreement of E8 are the same count."""
    agree = {f.subject: f.numbers["argmax_agreement"]["value"] for f in told if f.question.id == "E8"}
    for f in told:
        if f.question.id == "E3a":
            drafter = f.subject.split(" > ")[0]
            assert f.numbers["alpha_13"]["value"] == pytest.approx(agree[f"target, {drafter}"])
