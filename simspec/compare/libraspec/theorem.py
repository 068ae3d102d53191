"""Algorithm 1 against its own theorems, round by round: how far lengths are apart, and what that costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from simspec.compare.asked import Asked, Progress
from simspec.compare.batches import draw_prompts
from simspec.compare.length_runs import LengthSettings, Replayed, replayed
from simspec.compare.libraspec.rounds import Rounds, affine, passes, statements
from simspec.compare.libraspec.shares import Floats, apart, mean_over, over_draws, quantiles, told
from simspec.compare.recalibrated import with_confidence
from simspec.cost.models import CostModel
from simspec.metrics import percent_over
from simspec.oracle.lengths import calibrated
from simspec.replay.pricing import two_level_seconds
from simspec.replay.trajectories import draft_limit
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import ExactMarginal, LengthRule, LibraSpec, Prescribed, View
from simspec.speculation.lengths_libraspec import RepairedLibraSpec, TheoremLibraSpec
from simspec.speculation.rule_files import shortened
from simspec.traces.index import Ints, Trace

# What the others are held against end to end: the rule without a constant that a drafter can carry out.
REFERENCE = "marginal"
# A drafter of one token at a time would begin with one.
FIRST = 1
# Rounds whose statements are looked at together.
AT_ONCE = 2000


def study(trace: Trace, costs: list[CostModel], asked: Asked, say: Progress) -> dict[str, Any]:
    """Lengths at every start and what the theory says of them, for every priced drafter but look-ups.

    Rules end in their block size n: ``printed-n`` Algorithm 1, ``theorem-n`` the theorems' eps in its loop,
    ``theorem-n-p`` the same fed with p-hat (:func:`~simspec.oracle.lengths.calibrated`, from the other half
    of the prompts), ``repaired-n``. ``theorem-own`` has eps from the cycle's own cost for the constant and
    sees the whole block, ``marginal`` is the exact marginal rule; ``argmax`` and ``argmax-p`` take the
    greatest expected tokens per second of the whole block, by q and by p-hat.

    Returns:
        ``alpha``, ``block``, ``longest``, ``prompts`` (of each task), ``costs.<name>`` = {``label``,
        ``drafters.<name>``}: ``starts``, ``lengths.<rule>`` = {mean, quantiles}, ``apart.<where>.<rule>.
        <rule>`` as :func:`~simspec.compare.libraspec.shares.apart`, second less first; where ``starts`` is
        all of them and ``visited`` those at which cycles of the first rule begin;
        ``past.<where>.<printed rule>`` = {share, share_interval, most} beyond ``longest``;
        ``loss.<where>.<rule>`` = {mean (%), mean_interval, quantiles} of expected tokens per second by p-hat
        that is left; ``replay.<kind>.<rule>`` = {seconds_per_token, over (% over the marginal rule's,
        paired), over_interval, submitted, drafted; for a rule fed with p-hat over_q and over_q_interval, %
        over itself fed with q}, kind ``alone`` with nothing drafted but what is
        submitted (and ``plain`` decoding too), ``run`` with the rule's own drafting;
        ``statements.<name>.<chances>.<curve>`` = {rounds (of which it says something), fails, share,
        share_interval, visited (share of the rounds visited by Algorithm 1)}, names as
        :func:`~simspec.compare.libraspec.rounds.statements`, chances q and p, curve ``measured`` or
        ``affine``.
    """
    rule = shortened(LibraSpec(), trace.manifest.block_length)
    assert isinstance(rule, LibraSpec)
    able = [(c, d) for c in costs for d in trace.drafters if d in c.models and not trace.is_lookup(d)]
    say(f"theorem: {len(able)} drafters under {len(costs)} costs")
    done = Parallel(n_jobs=asked.jobs)(
        delayed(_one)(replace(trace, drafters={d: trace.drafters[d]}), d, c, rule, asked) for c, d in able
    )
    found: dict[str, Any] = {c.name: {"label": c.label, "drafters": {}} for c in costs}
    for (cost, drafter), each in zip(able, done, strict=True):
        found[cost.name]["drafters"][drafter] = each
    return {
        "alpha": rule.alpha,
        "block": rule.block,
        "longest": rule.longest,
        "prompts": trace.prompts["category"].value_counts(sort=False).to_dict(),
        "costs": found,
    }


def recalibrated(trace: Trace, drafter: str) -> Trace:
    """The record as if the drafter's confidences were p-hat."""
    return with_confidence(trace, drafter, calibrated(trace, drafter))


def _rules(printed: LibraSpec) -> dict[str, tuple[LengthRule, str]]:
    """Rules that a request can carry out, and what they are fed."""
    found: dict[str, tuple[LengthRule, str]] = {}
    for n in dict.fromkeys((printed.block, FIRST)):
        theorem = TheoremLibraSpec(printed.alpha, n, printed.longest)
        found[f"printed-{n}"] = replace(printed, block=n), "q"
        found[f"theorem-{n}"] = theorem, "q"
        found[f"theorem-{n}-p"] = theorem, "p"
        found[f"repaired-{n}"] = RepairedLibraSpec(n, printed.longest), "q"
    return {**found, REFERENCE: (ExactMarginal(printed.longest), "q")}


@dataclass(frozen=True)
class _Setting:
    """A drafter under a cost: every start, by confidences q and by p-hat."""

    printed: LibraSpec
    traces: dict[str, Trace]
    seconds: Floats
    limit: Ints
    drafter: str

    def rounds(self, chances: str, at: Ints) -> Rounds:
        """What can be drafted from flat positions, within d_max."""
        longest = self.printed.longest
        reach = np.minimum(self.limit[at], longest)
        p = self.traces[chances].drafters[self.drafter].confidence[at, :longest].astype(np.float64)
        p[np.arange(longest) >= reach[:, None]] = 0.0
        return Rounds(p, self.seconds[at, : longest + 1], reach)

    def decided(self, rule: LengthRule, chances: str) -> Ints:
        """Lengths submitted at every flat position, (N,)."""
        q = self.traces[chances].drafters[self.drafter].confidence.astype(np.float64)
        q[np.arange(q.shape[1]) >= self.limit[:, None]] = 0.0
        view = View(q, self.limit, self.seconds)
        return np.minimum(rule.decide(view, rule.begin(len(q))).submitted, self.limit)


def _one(trace: Trace, drafter: str, cost: CostModel, printed: LibraSpec, asked: Asked) -> dict[str, Any]:
    chain = Chain((drafter, trace.target))
    limit = draft_limit(trace, drafter, np.arange(len(trace.tokens)))
    given = {"q": trace, "p": recalibrated(trace, drafter)}
    setting = _Setting(printed, given, two_level_seconds(trace, chain, cost, 1), limit, drafter)
    starts = np.flatnonzero(limit > 0)
    lengths = {name: setting.decided(*rule) for name, rule in _rules(printed).items()}
    lengths |= _of_whole_blocks(setting, starts)

    settings = LengthSettings(1, asked.draws, asked.seed)
    never = {"plain": np.zeros_like(limit)}
    prescribed = {n: Prescribed(d) for n, d in (lengths | never).items()}
    alone = replayed(trace, drafter, cost, settings, prescribed)
    run = {
        name: replayed(given[chances], drafter, cost, settings, {name: rule})[name]
        for name, (rule, chances) in _rules(printed).items()
    }
    visited = {name: alone[name].flat[limit[alone[name].flat] > 0] for name in lengths}
    counts = draw_prompts(trace, asked.draws, asked.seed).counts()
    at = {name: {"starts": starts, "visited": here} for name, here in visited.items()}
    where = ("starts", "visited")

    def between(one: str, other: str, place: str) -> dict[str, Any]:
        here = at[one][place]
        return apart(lengths[one][here], lengths[other][here], trace.prompt[here], counts)

    left = _left(setting, lengths, starts)
    over = partial(_past, lengths=lengths, prompt=trace.prompt, longest=printed.longest, counts=counts)
    return {
        "starts": len(starts),
        "lengths": {
            n: {"mean": float(d[starts].mean()), "quantiles": quantiles(d[starts])}
            for n, d in lengths.items()
        },
        "apart": {w: {a: {b: between(a, b, w) for b in lengths if b != a} for a in lengths} for w in where},
        "past": {w: {n: over(n, at[n][w]) for n in lengths if n.startswith("printed")} for w in where},
        "loss": {
            w: {
                n: {
                    **told("mean", mean_over(left[n][at[n][w]], trace.prompt[at[n][w]], counts)),
                    "quantiles": quantiles(left[n][at[n][w]]),
                }
                for n in lengths
            }
            for w in where
        },
        "replay": {"alone": _end_to_end(alone), "run": _end_to_end(run)},
        "statements": _statements(setting, starts, visited[f"printed-{printed.block}"], trace, counts),
    }


def _of_whole_blocks(setting: _Setting, starts: Ints) -> dict[str, Ints]:
    """Lengths that need the whole block before they are chosen, 0 where nothing can be drafted."""
    found = {
        name: np.zeros(len(setting.limit), dtype=np.int64) for name in ("theorem-own", "argmax", "argmax-p")
    }
    for at in _chunks(starts):
        q = setting.rounds("q", at)
        begin = np.minimum(setting.printed.block, q.reach)
        found["theorem-own"][at] = passes(q.own_limits, begin, q.reach)[:, -1]
        found["argmax"][at] = q.best()
        found["argmax-p"][at] = setting.rounds("p", at).best()
    return found


def _left(setting: _Setting, lengths: Mapping[str, Ints], starts: Ints) -> dict[str, Floats]:
    """% of the greatest expected tokens per second, by p-hat, that each length leaves, (N,)."""
    found = {name: np.zeros(len(setting.limit)) for name in lengths}
    for at in _chunks(starts):
        rates = setting.rounds("p", at).rates
        most = rates.max(axis=1)
        for name, chosen in lengths.items():
            inside = np.minimum(chosen[at], rates.shape[1] - 1)
            rate = np.take_along_axis(rates, inside[:, None], axis=1)[:, 0]
            found[name][at] = 100.0 * (1.0 - rate / most)
    return found


def _past(
    name: str, at: Ints, *, lengths: Mapping[str, Ints], prompt: Ints, longest: int, counts: Floats
) -> dict[str, Any]:
    beyond = lengths[name][at] - longest
    return {
        **told("share", mean_over(beyond > 0, prompt[at], counts)),
        "most": int(max(beyond.max(initial=0), 0)),
    }


def _end_to_end(found: Mapping[str, Replayed]) -> dict[str, Any]:
    reference = found[REFERENCE].seconds_per_token
    out = {}
    for name, each in found.items():
        over = np.asarray(percent_over(each.seconds_per_token, reference))
        out[name] = {
            "seconds_per_token": float(each.seconds_per_token[0]),
            **over_draws("over", over),
            "submitted": float(each.submitted.mean()),
            "drafted": float(each.drafted.mean()),
        }
        if (unfed := found.get(name.removesuffix("-p"))) is not None and name.endswith("-p"):
            over = np.asarray(percent_over(each.seconds_per_token, unfed.seconds_per_token))
            out[name] |= over_draws("over_q", over)
    return out


def _statements(
    setting: _Setting, starts: Ints, visited: Ints, trace: Trace, counts: Floats
) -> dict[str, Any]:
    printed = setting.printed
    found: dict[str, Any] = {}
    seen = np.isin(starts, visited)
    for chances in ("q", "p"):
        for curve in ("measured", "affine"):
            parts = []
            for at in _chunks(starts):
                rounds = setting.rounds(chances, at)
                straight, slope = affine(rounds)
                parts.append(
                    statements(
                        rounds if curve == "measured" else straight,
                        slope,
                        printed.alpha,
                        printed.block,
                        printed.longest,
                        first=FIRST,
                    )
                )
            for name in parts[0]:
                says = np.concatenate([part[name].applies for part in parts])
                fails = np.concatenate([part[name].fails for part in parts])
                prompt = trace.prompt[starts]
                found.setdefault(name, {}).setdefault(chances, {})[curve] = {
                    "rounds": int(says.sum()),
                    "fails": int(fails[says].sum()),
                    **told("share", mean_over(fails[says], prompt[says], counts)),
                    "visited": mean_over(fails[says & seen], prompt[says & seen], counts).value,
                }
    return found


def _chunks(starts: Ints) -> list[Ints]:
    return np.array_split(starts, max(1, -(-len(starts) // AT_ONCE)))
