"""The study of trees on made-up records whose truth is known, and what the page says of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

from simspec.compare.asked import Asked
from simspec.compare.libraspec.tree_runs import Bench, Fixed, Score
from simspec.compare.libraspec.trees import _Told, study
from simspec.cost.models import AffineCost
from simspec.replay.lockstep import price
from simspec.replay.trajectories import run
from simspec.report.libraspec import trees as section
from simspec.report.parts import Grid, Picture
from simspec.report.style import drawing
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import Static
from simspec.traces.drafters import NEVER, Choices
from simspec.traces.index import Trace
from simspec.traces.manifest import ModelEntry
from tests.toy import LOOKUP, MIDDLE, SMALL, TARGET, Setting, Toy

ASKED = Asked(draws=10, seed=3)
AT_ONCE = 4


def cost(name: str = "cheap", ratio: float = 0.1) -> AffineCost:
    return AffineCost(name, "made up", TARGET, 1.0, 0.02, 0.0, 0.1, {SMALL: ratio, MIDDLE: ratio})


def quiet(_: str) -> None: ...


@pytest.fixture(scope="module")
def trace() -> Trace:
    return Toy(Setting(seed=4, prompts=12, output_tokens=20, block_length=6)).trace()


@pytest.fixture(scope="module")
def products(trace: Trace) -> Trace:
    """The same texts, drafted in parallel: marginals out of a hat, and the text's tokens drawn from them."""
    generator = np.random.default_rng(1)
    many, depth = len(trace.tokens), trace.manifest.block_length
    said = np.sort(generator.dirichlet([0.3] * 5, (many, depth)), axis=2)[..., ::-1]
    upto = np.cumsum(said, axis=2)
    rank = (generator.random((many, depth, 1)) > upto).sum(axis=2).astype(np.int32)
    limit = np.minimum(depth, trace.remaining)
    rank[np.arange(depth) >= trace.remaining[:, None]] = NEVER
    wrong = rank != 0
    matched = np.where(wrong.any(axis=1), wrong.argmax(axis=1), depth)
    choices = Choices(said[..., :4].astype(np.float32), rank, AT_ONCE)
    index = replace(
        trace.drafters[SMALL],
        length=limit,
        matched=np.minimum(matched, limit),
        choices=choices,
    )
    entry = ModelEntry(kind="block-parallel", about={"block": AT_ONCE})
    manifest = msgspec.structs.replace(
        trace.manifest, name="products", alternatives=4, models={**trace.manifest.models, SMALL: entry}
    )
    return replace(trace, manifest=manifest, drafters={SMALL: index})


@pytest.fixture(scope="module")
def found(trace: Trace, products: Trace) -> dict[str, Any]:
    told = study(trace, [cost(), cost("dear", 2.0)], ASKED, quiet, tree_trace=products)
    return msgspec.json.decode(msgspec.json.encode(told))


def of(found: dict[str, Any], record: int, drafter: str, name: str) -> dict[str, Any]:
    every = {d["drafter"]: d for d in found["records"][record]["drafters"]}
    return every[drafter]["costs"][name]


def test_processes_change_nothing(trace: Trace, found: dict[str, Any]) -> None:
    alone = study(trace, [cost(), cost("dear", 2.0)], replace(ASKED, jobs=2), quiet)
    assert msgspec.json.decode(msgspec.json.encode(alone))["records"] == found["records"][:1]


def test_chains_are_static_lengths(trace: Trace, found: dict[str, Any]) -> None:
    each = np.arange(len(trace.prompts))[:, None]
    plain = run(trace, Chain((TARGET,)), None, trace.offsets[:-1])
    for row in of(found, 0, MIDDLE, "cheap")["sizes"]["chain"]:
        runs = run(trace, Chain((MIDDLE, TARGET)), Static(row["nodes"]), trace.offsets[:-1])
        seconds = [price(r, each, [cost()], lookup=False)[0].seconds.sum() for r in (plain, runs)]
        assert row["speedup"] == pytest.approx(seconds[0] / seconds[1])
        assert row["over_chain"] == 0.0
        assert row["tokens"] == pytest.approx(trace.prompts["output_tokens"].sum() / runs.active.sum())


def test_a_drafter_dearer_than_the_target_is_not_used_by_who_weighs_costs(found: dict[str, Any]) -> None:
    ways = of(found, 0, SMALL, "dear")["ways"]
    for name in ("chain", "top-k", "best-first", "drafted-first", "cost-aware chain", "cost-aware tree"):
        assert (ways[name]["speedup"], ways[name]["nodes_a_cycle"]) == (1.0, 0.0), name
    assert ways["libraspec tree"]["speedup"] < 1.0


def test_products_beat_spines_beat_chains_where_truth_is_drawn_from_what_is_said(
    found: dict[str, Any],
) -> None:
    sizes = of(found, 1, SMALL, "cheap")["sizes"]
    assert "drafted-first" not in sizes  # one forward drafts them all
    tokens = {f: {r["nodes"]: r["tokens"] for r in rows} for f, rows in sizes.items()}
    for n in (4, 8, 16):
        assert tokens["ddtree"][n] > tokens["chain"].get(n, max(tokens["chain"].values()))
    assert tokens["ddtree"][16] > tokens["best-first"][16]
    ways = of(found, 1, SMALL, "cheap")["ways"]
    assert ways["ddtree"]["over_chain_interval"][1] < 0.0
    # Every cycle that drafts pays for one forward and gets its places.
    assert max(r["places"] for r in sizes["ddtree"]) <= AT_ONCE
    assert "ddtree" not in of(found, 0, SMALL, "cheap")["sizes"]


def test_sizes_are_tuned_on_the_other_half(trace: Trace) -> None:
    many = len(trace.prompts)
    even = np.arange(many) % 2 == 0
    counts = np.ones(many, dtype=np.int64)

    def member(fast: np.ndarray) -> Score:
        return Score({"cheap": np.where(fast, 1.0, 2.0)}, counts, counts, counts)

    likes_even, likes_odd = Fixed("chain", 0, 1), Fixed("chain", 0, 2)
    told = _Told(trace, {"cheap": np.full(many, 3.0)}, ASKED)
    score, best = told.tuned(cost(), {likes_even: member(even), likes_odd: member(~even)})
    assert best == [likes_odd, likes_even]
    assert (score.seconds["cheap"] == 2.0).all()  # what the other half likes is slow on this one


def test_what_is_scored_teaches_the_cost_aware_rule_nothing(products: Trace) -> None:
    """Its lengths stay when the scored prompts' verdicts are all turned over."""
    many = len(products.prompts)
    mine, others = np.arange(0, many, 2), np.arange(1, many, 2)
    index = products.drafters[SMALL]
    assert index.choices is not None
    rank = index.choices.text_rank.copy()
    scored = np.isin(products.prompt, mine)
    rank[scored] = np.where(rank[scored] == 0, 1, 0)
    turned = replace(
        products, drafters={SMALL: replace(index, choices=replace(index.choices, text_rank=rank))}
    )
    first, again = (Bench(t, SMALL, [cost()]) for t in (products, turned))
    a, b = first.foresight(others), again.foresight(others)
    assert (a.first, a.follow.tolist(), a.chance.tolist()) == (b.first, b.follow.tolist(), b.chance.tolist())
    assert first.foresight(mine).first != again.foresight(mine).first
    _, rate = first.cost_aware("tree", cost(), mine, others, 1.0)
    assert again.cost_aware("tree", cost(), mine, others, 1.0)[1] == rate


def test_ranks_are_shares(found: dict[str, Any], products: Trace) -> None:
    choices = products.drafters[SMALL].choices
    assert choices is not None
    ranks = found["records"][1]["drafters"][0]["ranks"]
    assert sum(ranks) == pytest.approx(1.0)
    free = np.minimum(choices.text_rank[products.remaining > 1, 0], 4)
    assert ranks[0] == pytest.approx((free == 0).mean(), abs=0.05)


def test_who_is_left_out_and_why(found: dict[str, Any]) -> None:
    assert found["left_out"] == [{"record": "toy", "drafter": LOOKUP, "why": "certain by form"}]


def test_the_page_says_what_the_document_says(found: dict[str, Any], tmp_path: Any) -> None:
    told = section.findings(found)
    assert len(told) == 1 + len(found["costs"])
    assert "No drafter here is block-parallel" not in told[0]
    alone = {**found, "records": found["records"][:1]}
    assert "No drafter here is block-parallel" in section.findings(alone)[0]
    dear = next(s for s in section.findings(alone) if s.startswith("Cost dear"))
    assert "in none of 2 cases" in dear
    best = max(
        (d["costs"]["cheap"]["ways"]["cost-aware tree"] for r in found["records"] for d in r["drafters"]),
        key=lambda w: w["speedup"],
    )
    assert f"{best['speedup']:.3f}" in next(s for s in told if s.startswith("Cost cheap"))
    with drawing():
        shown = list(section.parts(found, tmp_path, "SYNTHETIC behaviour"))
    pictures = [p for p in shown if isinstance(p, Picture)]
    assert sorted(p.file for p in pictures) == sorted(p.name for p in tmp_path.iterdir())
    assert all("SYNTHETIC" in p.caption for p in shown)
    for grid in shown:
        if isinstance(grid, Grid):
            assert {len(row) for row in grid.rows} == {len(grid.header)}
