"""Cells of a sweep side by side: over replications, less plain decoding, and where they cross."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simspec.scenario.paired import over_replications
from simspec.sweep.cell import COMPARED, Figures
from simspec.sweep.crossing import Crossover, crossover
from simspec.sweep.grid import OWN
from simspec.sweep.passes import TOKENS, parts_of, terms
from simspec.sweep.policies import OFF

# A gain: the figure, whether more of it is better, and the view of a pass's time that says why.
GAINS: dict[str, tuple[int, str]] = {
    "tpot_seconds_mean": (-1, "requests"),
    "throughput_tokens_per_second": (1, "engine"),
}

Key = tuple[str, str, float]


@dataclass(frozen=True)
class Table:
    """All figures: (policy, verdicts, load) -> one :data:`Figures` for each seed."""

    loads: tuple[float, ...]
    runs: Mapping[Key, Sequence[Figures]]

    @property
    def series(self) -> list[tuple[str, str]]:
        """Policies and assumptions, in the order in which they came."""
        return list(dict.fromkeys((policy, verdicts) for policy, verdicts, _ in self.runs))

    def over(self, key: Key, than: Key | None = None) -> dict[str, dict[str, float | None]]:
        """Figures over replications with 95% intervals; with ``than`` paired differences."""
        mine = self.runs[key]
        if than is None:
            values = {name: [run[name] for run in mine] for name in mine[0]}
        else:
            pairs = list(zip(mine, self.runs[than], strict=True))
            values = {name: [_less(a[name], b[name]) for a, b in pairs] for name in COMPARED}
        return {name: over_replications(several).as_json() for name, several in values.items()}

    def terms(self, key: Key, view: str) -> dict[str, dict[str, float | None]] | None:
        """The terms of :func:`simspec.sweep.passes.terms` against plain decoding, over replications."""
        plain = self.runs[OFF, OWN, key[2]]
        found = [terms(view, a, b) for a, b in zip(self.runs[key], plain, strict=True)]
        known = [one for one in found if one is not None]
        if not known or len(known) < len(found):
            return None
        return {name: over_replications([one[name] for one in known]).as_json() for name in known[0]}

    def cross(self, policy: str, verdicts: str, figure: str) -> Crossover:
        """Where the gain in a figure changes sign."""
        better, _ = GAINS[figure]
        gains = []
        for load in self.loads:
            pairs = zip(self.runs[policy, verdicts, load], self.runs[OFF, OWN, load], strict=True)
            less = [_less(a[figure], b[figure]) for a, b in pairs]
            gains.append([None if gap is None else better * gap for gap in less])
        return crossover(self.loads, gains)

    def why(self, policy: str, verdicts: str, figure: str, found: Crossover) -> dict[str, Any] | None:
        """The term that turns the gain: of what changes from before the crossover to after it, the most.

        ``changes`` are shares of a plain pass's time; they sum to the change of the margin, and a part that
        rises counts against it. ``exceeding``: parts that alone cost more, after it, than the tokens gained.
        """
        if found.before is None or found.after is None:
            return None
        view = GAINS[figure][1]
        before, after = (self.terms((policy, verdicts, x), view) for x in (found.before, found.after))
        if before is None or after is None:
            return None
        change: dict[str, float] = {}
        for name in (TOKENS, *parts_of(view)):
            gap = _less(after[name]["value"], before[name]["value"])
            assert gap is not None
            change[name] = gap if name == TOKENS else -gap
        turn = -1 if found.verdict == "stops paying" else 1
        gained = after[TOKENS]["value"] or 0.0
        return {
            "view": view,
            "term": max(change, key=lambda name: turn * change[name]),
            "changes": change,
            "before": before,
            "after": after,
            "exceeding": [part for part in parts_of(view) if (after[part]["value"] or 0.0) > gained],
        }


def _less(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other
