"""Ours, for rejection sampling: what is drafted is submitted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from simspec.speculation.lengths import Decision
from simspec.speculation.planners_longrun import LongRun
from simspec.speculation.planning import State, Waiting


@dataclass(frozen=True)
class LongRunAsDrafted(LongRun):
    """:class:`LongRun` that submits all it drafts.

    Whether a further token is drafted is settled by the confidences of those before it, of all rows; going
    back on them afterwards is what would change what is drawn (claim L16).
    """

    sampling_safe: ClassVar[bool] = True

    def decide(self, waiting: Waiting, state: State) -> Decision:
        drafted = super().decide(waiting, state).drafted
        return Decision(drafted, drafted)
