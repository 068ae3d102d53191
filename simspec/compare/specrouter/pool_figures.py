"""What growing a pool did: adoption, time lost, gains taken up, and who holds the criterion."""

from __future__ import annotations

from typing import Any

import numpy as np

from simspec.compare.asked import Asked
from simspec.compare.bands import BAND, short, shorts, with_interval
from simspec.compare.specrouter.serving_streams import Floats, Served
from simspec.metrics import percent_over
from simspec.streams import stream

# A newcomer's prior acceptance with every other model, by name.
PRIORS = {"0.5": 0.5, "optimistic": 0.95, "pessimistic": 0.05}
# A newcomer is of no use if the best static candidate gains less by it than "no_gain" %, and good from
# "gain" % on. Of no use: after "settled" texts in less than "share" of cycles (asked of made-up ones only: a
# recorded one may be used without harm), and less than "lost" % more time over all texts since it joined.
# Good: over the texts after "settled", at least "taken_up" of what the best static candidates gain.
CRITERION = {"no_gain": 0.5, "gain": 2.0, "settled": 5, "share": 0.05, "lost": 2.0, "taken_up": 0.8}


def figures(
    served: dict[str, list[Served]],
    halves: int,
    arms: list[tuple[str, bool]],
    useful: dict[str, bool | None],
    before: int,
    asked: Asked,
) -> dict[str, Any]:
    """Figures of each router and newcomer at one batch size.

    Args:
        served: by router; under "" the best static candidates of the small and of the grown pools.
        halves: of the prompts, each with its own streams.
        arms: newcomer and whether it joins, by kind of decider.
        useful: of made-up models, what is known beforehand.
        before: texts before the newcomer joins.

    Returns:
        ``gain.<newcomer>`` = [value, low, high], ``routers.<router>.<newcomer>`` = {``share``, ``share_low``,
        ``share_high`` (cycles that use it, by text since it joined; the middle 80% of streams), ``regret``,
        ``regret_low``, ``regret_high`` (% more time since it joined than the best static candidate of the
        grown pool), ``late_share`` (after the settled texts), ``lost`` (% more time than without it),
        ``late_lost`` (likewise after the settled texts),
        ``taken_up`` (share of the static gain after the settled texts; null where that is too small), each
        [value, low, high] with its 95% interval over draws of streams, ``tokens`` (share of tokens),
        ``longest_run`` = [median, most] in cycles, ``untried`` (streams in which it never ran), ``kind``
        ("useless", "good" or ""), ``held`` (whether the criterion is; null without a kind)}.
    """
    streams = served[""][0].seconds.shape[1] // len(arms)
    drawn = stream(asked.seed, "bootstrap", "streams").integers(0, streams, (asked.draws, streams))
    weights = np.stack([np.ones(streams), *(np.bincount(d, minlength=streams) for d in drawn)])

    def all_of(one: Served, field: str) -> Floats:
        """(T, arms, streams), of both halves."""
        values = np.asarray(getattr(one, field), dtype=np.float64)
        by_half = values.reshape(*values.shape[:-1], halves, len(arms), -1)
        return np.concatenate(np.split(by_half, halves, axis=-3), axis=-1).squeeze(-3)

    small, grown = (all_of(one, "seconds")[before:] for one in served[""])
    found: dict[str, Any] = {"gain": {}, "routers": {}}
    for name, (one, *_) in served.items():
        if not name:
            continue
        seconds, cycles, used = (all_of(one, f)[before:] for f in ("seconds", "cycles", "used"))
        tokens, used_tokens = (all_of(one, f)[before:] for f in ("tokens", "used_tokens"))
        longest = all_of(one, "longest")
        mine = found["routers"][name] = {}
        for a, (newcomer, joins) in enumerate(arms):
            if not joins:
                continue
            control = arms.index((newcomer, False)) if (newcomer, False) in arms else arms.index(("", False))
            gained = small[:, a].sum(axis=0), grown[:, a].sum(axis=0)
            gain = 100.0 * (1.0 - (weights @ gained[1]) / (weights @ gained[0]))
            found["gain"][newcomer] = with_interval(gain)
            late = slice(int(CRITERION["settled"]), None)
            share = used[:, a] / cycles[:, a]
            total = np.cumsum(seconds[:, a], axis=0), np.cumsum(grown[:, a], axis=0)
            regret = np.asarray(percent_over(total[0], total[1]))
            late_share = (weights @ used[late, a].sum(axis=0)) / (weights @ cycles[late, a].sum(axis=0))
            lost = percent_over(
                weights @ seconds[:, a].sum(axis=0), weights @ seconds[:, control].sum(axis=0)
            )
            late_lost = percent_over(
                weights @ seconds[late, a].sum(axis=0), weights @ seconds[late, control].sum(axis=0)
            )
            saved = weights @ (seconds[late, control] - seconds[late, a]).sum(axis=0)
            static = weights @ (small[late, a] - grown[late, a]).sum(axis=0)
            kind = _kind(useful.get(newcomer), float(gain[0]))
            entry = {
                "share": shorts(used[:, a].sum(axis=1) / cycles[:, a].sum(axis=1)),
                "share_low": shorts(np.quantile(share, BAND[0], axis=1)),
                "share_high": shorts(np.quantile(share, BAND[1], axis=1)),
                "regret": shorts(np.asarray(percent_over(total[0].sum(axis=1), total[1].sum(axis=1)))),
                "regret_low": shorts(np.quantile(regret, BAND[0], axis=1)),
                "regret_high": shorts(np.quantile(regret, BAND[1], axis=1)),
                "late_share": with_interval(late_share),
                "lost": with_interval(np.asarray(lost)),
                "late_lost": with_interval(np.asarray(late_lost)),
                "taken_up": with_interval(saved / static) if kind == "good" else None,
                "tokens": short(float(used_tokens[:, a].sum() / tokens[:, a].sum())),
                "longest_run": [short(float(np.median(longest[a]))), int(longest[a].max())],
                "untried": int((used[:, a].sum(axis=0) == 0).sum()),
                "kind": kind,
            }
            mine[newcomer] = {**entry, "held": _held(entry, newcomer in useful)}
    return found


def verdicts(costs: dict[str, Any]) -> dict[str, Any]:
    """By router, over costs and batch sizes: ``useless`` and ``good`` = {``held``, ``of``, ``failed`` (cost,
    batch size and newcomer of each failure)}, and ``holds``, whether nothing failed."""
    found: dict[str, Any] = {}
    for cost, study in costs.items():
        for batch, here in study["batches"].items():
            for router, newcomers in here["routers"].items():
                mine = found.setdefault(
                    router, {k: {"held": 0, "of": 0, "failed": []} for k in ("useless", "good")}
                )
                for newcomer, entry in newcomers.items():
                    if entry["held"] is None:
                        continue
                    group = mine[entry["kind"]]
                    group["of"] += 1
                    group["held"] += entry["held"]
                    if not entry["held"]:
                        group["failed"].append([cost, batch, newcomer])
    for mine in found.values():
        mine["holds"] = all(mine[k]["held"] == mine[k]["of"] for k in ("useless", "good"))
    return found


def _kind(useful: bool | None, gain: float) -> str:
    if useful is False or gain < CRITERION["no_gain"]:
        return "useless"
    return "good" if gain >= CRITERION["gain"] else ""


def _held(entry: dict[str, Any], made_up: bool) -> bool | None:
    if entry["kind"] == "useless":
        alone = not made_up or entry["late_share"][0] < CRITERION["share"]
        return bool(alone and entry["lost"][0] < CRITERION["lost"])
    if entry["kind"] == "good":
        return bool(entry["taken_up"][0] >= CRITERION["taken_up"])
    return None
