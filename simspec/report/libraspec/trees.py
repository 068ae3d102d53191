"""Chains against trees, shown: speedup by number of nodes, and what each way of choosing trees reaches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from simspec.report.parts import Grid, Picture
from simspec.report.style import BLACK, COLOURS, GREY, LINES, MARKERS, ORANGE, bars, below, save, sheet
from simspec.report.words import listed, span, with_span

OURS, LIBRASPEC = "cost-aware tree", "libraspec tree"
FIXED = ("top-k", "best-first", "drafted-first", "ddtree")  # trees whose size is tuned
FAMILIES = ("chain", "top-2", "top-4", "best-first", "drafted-first", "ddtree")
NOT_PRICED = (
    "a tree of n nodes is priced as a forward of n + 1 tokens; what its mask costs in attention and what "
    "moving cache entries costs is not priced"
)


def findings(found: dict[str, Any]) -> list[str]:
    said = [_exact(found)]
    for cost in found["costs"]:
        cells = list(_cells(found, cost))
        if cells:
            said.append(_of_cost(cost, cells))
    return said


def _cells(found: dict[str, Any], cost: str) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Every record and drafter that a cost prices: a name, the drafter, and what was found."""
    for record in found["records"]:
        for drafter in record["drafters"]:
            if cost in drafter["costs"]:
                name = f"{drafter['drafter']}, {record['alternatives']} a place"
                yield name, drafter, drafter["costs"][cost]


def _exact(found: dict[str, Any]) -> str:
    drafters = [d for record in found["records"] for d in record["drafters"]]
    text = (
        "What can be replayed exactly from one recorded block per start: the block with alternatives of each "
        "place as leaves, since what an autoregressive drafter says after a wrong token is never needed; and "
        "any tree over the places of one forward of a block-parallel drafter, whose words do not hang on the "
        f"path (DDTree, arXiv 2604.12989). Batch 1; {NOT_PRICED}."
    )
    if not any(d["at_once"] > 1 for d in drafters):
        text += (
            " No drafter here is block-parallel: DDTree is held against brute force and decoded with tiny "
            "networks in the tests, and nothing is said of its speed."
        )
    return text


def _clear(ways: list[dict[str, Any]], against: str, sign: int) -> int:
    """In how many the interval of time over something leaves out 0 on one side."""
    ends = [way[f"over_{against}_interval"] for way in ways]
    return sum(low is not None and (high < 0 if sign < 0 else low > 0) for low, high in ends)


def _of_cost(cost: str, cells: list[tuple[str, dict[str, Any], dict[str, Any]]]) -> str:
    paying = [c for c in cells if any(w["speedup"] > 1.0005 for w in c[2]["ways"].values())]
    if not paying:
        worst = min(cells, key=lambda c: float(c[2]["ways"][LIBRASPEC]["speedup"]))
        way = worst[2]["ways"][LIBRASPEC]
        return (
            f"Cost {cost}: in none of {len(cells)} cases (drafters x records) does a draft pay, as a chain "
            "or as a tree, and what is tuned or weighs costs falls back on plain decoding. LibraSpec's rule "
            f"does not: its tree is down to {with_span(way['speedup'], way['speedup_interval'], 2)} times "
            f"plain speed ({worst[0]})."
        )
    gains = [min((c[2]["ways"][f] for f in FIXED if f in c[2]["ways"]), key=_time) for c in paying]
    ours = [c[2]["ways"][OURS] for c in paying]
    published = [c[2]["ways"][LIBRASPEC] for c in paying]
    chains = [c[2]["ways"]["libraspec chain"] for c in paying]
    # How much faster that rule's tree is than its own chain.
    moved = [
        round(100 * (p["speedup"] / c["speedup"] - 1), 1) + 0.0
        for c, p in zip(chains, published, strict=True)
    ]
    best = max(paying, key=lambda c: float(c[2]["ways"][OURS]["speedup"]))
    top, chain = best[2]["ways"][OURS], best[2]["ways"]["chain"]
    return (
        f"Cost {cost}, {len(paying)} of {len(cells)} cases (drafters x records), where a draft pays: time "
        f"against the tuned chain's is {_range(gains, 'chain')} with the best tree of tuned size, its family "
        f"picked afterwards (less beyond its 95% interval in {_clear(gains, 'chain', -1)}), and "
        f"{_range(ours, 'chain')} with the cost-aware tree (in {_clear(ours, 'chain', -1)}). Against the "
        f"cost-aware tree's it is {_range(gains, 'ours')} with that best tree (more beyond its interval in "
        f"{_clear(gains, 'ours', 1)}, less in {_clear(gains, 'ours', -1)}) and "
        f"{_range(published, 'ours')} with LibraSpec's rule on nodes, whose tree moves its chain's speed by "
        f"{min(moved):+.1f} to {max(moved):+.1f}%. Fastest: {best[0]}, "
        f"{with_span(top['speedup'], top['speedup_interval'], 3)} times plain speed with "
        f"{top['nodes_a_cycle']:.1f} nodes on {top['places']:.1f} places a cycle; its tuned chain "
        f"{with_span(chain['speedup'], chain['speedup_interval'], 3)}."
    )


def _time(way: dict[str, Any]) -> float:
    return -float(way["speedup"])


def _range(ways: list[dict[str, Any]], against: str) -> str:
    values = [way[f"over_{against}"] for way in ways]
    return f"{min(values):+.1f} to {max(values):+.1f}%"


def parts(found: dict[str, Any], figures: Path, said: str) -> Iterator[Picture | Grid]:
    for i, record in enumerate(found["records"]):
        if not record["drafters"]:
            continue
        save(_sizes(found, record), figures / f"trees-sizes-{i}.png")
        yield Picture(
            f"trees-sizes-{i}.png",
            "Speedup over plain decoding by number of nodes, batch 1. chain: the drafter's own block; top-2, "
            "top-4: so many tokens of each place in turn; best-first: the most probable nodes, drafting "
            "until they are certain; drafted-first: those of as many drafted places as the other half of the "
            "prompts finds best; ddtree: best-first on products. Diamond and cross: cost-aware tree and "
            "LibraSpec's rule on nodes, at their mean number of nodes; bars: 95% over draws of prompts. "
            f"{_of(record)}; costs: {_labels(found)}; {said}; {NOT_PRICED}.",
        )
    for record in found["records"]:
        if record["drafters"]:
            yield Grid(
                "Ways of choosing trees, batch 1: speedup over plain decoding; time over the tuned chain and "
                "over the cost-aware tree, paired (below 0: faster); nodes verified, places drafted and "
                "tokens emitted a cycle. Sizes are tuned, and the cost-aware rule is taught, on the half of "
                f"the prompts that is not scored. {_of(record)}; {said}.",
                *_ways(record),
            )
    for record in found["records"]:
        if record["drafters"]:
            yield Grid(
                "How often the text's token is a drafter's first, second ... choice, %. "
                f"{_of(record)}; {said}.",
                *_ranks(record),
                folded=True,
            )
            yield Grid(
                f"Speedup by number of nodes, and time over the chain of as many, %. {_of(record)}; {said}.",
                *_by_nodes(record),
                folded=True,
            )
    if found["left_out"]:
        yield Grid(
            f"Drafters of which no tree was made; {said}.",
            ["record", "drafter", "why"],
            [[x["record"], x["drafter"], x["why"]] for x in found["left_out"]],
            folded=True,
        )


def _of(record: dict[str, Any]) -> str:
    alternatives = (
        f"the {record['alternatives']} most probable tokens of each place were recorded"
        if record["recorded"]
        else "two tokens a place, the second's probability by the margin of the two best logits"
    )
    kind = "SYNTHETIC, " if record["origin"] == "synthetic" else ""
    return (
        f"Record {record['name']}: {kind}{record['prompts']} prompts of up to {record['output_tokens']} "
        f"tokens, {alternatives}"
    )


def _labels(found: dict[str, Any]) -> str:
    return "; ".join(f"{name} ({label})" for name, label in found["costs"].items())


def _sizes(found: dict[str, Any], record: dict[str, Any]) -> Figure:
    drafters = record["drafters"]
    costs = [c for c in found["costs"] if any(c in d["costs"] for d in drafters)]
    figure = sheet(4.0 * len(costs) + 0.6, 2.9 * len(drafters) + 1.0)
    grid = figure.subplots(len(drafters), len(costs), squeeze=False, sharex=True)
    for row, drafter in zip(grid, drafters, strict=True):
        for axes, cost in zip(row, costs, strict=True):
            axes.set_title(f"{drafter['drafter']}, {cost}", fontsize=10)
            if cost not in drafter["costs"]:
                axes.text(0.5, 0.5, "not priced", transform=axes.transAxes, ha="center", color=GREY)
                axes.set_yticks([])
                continue
            _panel(axes, drafter["costs"][cost])
        row[0].set_ylabel("times plain speed")
    for axes in grid[-1]:
        axes.set_xlabel("nodes")
    whole = max((axes for row in grid for axes in row), key=lambda a: len(a.get_legend_handles_labels()[1]))
    below(figure, whole, 4)
    return figure


def _panel(axes: Axes, of: dict[str, Any]) -> None:
    axes.axhline(1.0, color=GREY, linewidth=1.0)
    for k, family in enumerate(FAMILIES):
        if family in of["sizes"]:
            rows = of["sizes"][family]
            axes.plot(
                [r["nodes"] for r in rows],
                [r["speedup"] for r in rows],
                label=family,
                color=COLOURS[k],
                linestyle=LINES[k],
                marker=MARKERS[k],
                markersize=3.5,
                linewidth=1.2,
            )
    for name, marker, colour in ((OURS, "D", BLACK), (LIBRASPEC, "X", ORANGE)):
        way = of["ways"][name]
        error = [[v] for v in bars(way["speedup"], way["speedup_interval"])]
        axes.errorbar(
            [way["nodes_a_cycle"]],
            [way["speedup"]],
            yerr=error,
            label=name,
            linestyle="none",
            marker=marker,
            color=colour,
            markersize=8,
            markerfacecolor="white" if name == OURS else colour,
            markeredgewidth=1.6,
            capsize=3,
            zorder=5,
        )


def _ways(record: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    rows = []
    for drafter in record["drafters"]:
        for cost, of in drafter["costs"].items():
            for name, way in of["ways"].items():
                rows.append(
                    [
                        drafter["drafter"],
                        cost,
                        name,
                        f"{way['speedup']:.3f} ({span(way['speedup_interval'], 3)})",
                        *(_over(way, against) for against in ("chain", "ours")),
                        *(f"{way[k]:.2f}" for k in ("nodes_a_cycle", "places", "tokens")),
                        listed(dict.fromkeys(_member(m) for m in way["tuned"])),
                    ]
                )
    head = [
        "drafter",
        "cost",
        "way",
        "speedup (95%)",
        "over tuned chain, % (95%)",
        "over cost-aware, % (95%)",
    ]
    return [*head, "nodes", "places", "tokens", "tuned to"], rows


def _over(way: dict[str, Any], against: str) -> str:
    return f"{way[f'over_{against}']:+.1f} ({span(way[f'over_{against}_interval'], 1)})"


def _member(member: dict[str, Any]) -> str:
    if not member["nodes"]:
        return "no draft"
    on = f" on {member['places']} places" if member["places"] else ""
    return f"{member['family']} of {member['nodes']}{on}"


def _ranks(record: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    width = record["alternatives"]
    rows = [[d["drafter"], *(f"{100 * r:.1f}" for r in d["ranks"])] for d in record["drafters"]]
    return ["drafter", *(str(i + 1) for i in range(width)), "none of them"], rows


def _by_nodes(record: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    rows = []
    for drafter in record["drafters"]:
        for cost, of in drafter["costs"].items():
            for family, sizes in of["sizes"].items():
                for size in sizes:
                    over = "" if size["over_chain"] is None else _over(size, "chain")
                    rows.append(
                        [
                            drafter["drafter"],
                            cost,
                            family,
                            str(size["nodes"]),
                            f"{size['speedup']:.3f} ({span(size['speedup_interval'], 3)})",
                            over,
                            f"{size['places']:.2f}",
                            f"{size['tokens']:.2f}",
                        ]
                    )
    head = ["drafter", "cost", "family", "nodes", "speedup (95%)", "over the chain, % (95%)"]
    return [*head, "places", "tokens a cycle"], rows
