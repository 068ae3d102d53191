"""What a simulated engine is: its frozen parameters."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from simspec.errors import BadInput, unknown_name
from simspec.serving.candidates import Candidate, Links, Several, linked
from simspec.serving.choosing import Routed
from simspec.serving.clock import nanoseconds
from simspec.serving.kvcache import Memory
from simspec.serving.policies import Goodput, Policy
from simspec.serving.pricing import Costs
from simspec.serving.row_policies import RowPolicy
from simspec.serving.switching import Switching
from simspec.serving.verdicts import Source, Verdicts


@dataclass(frozen=True)
class Speculation:
    """Speculation is on: who says how long drafts are, and what the target accepts.

    Attributes:
        remembered: how much of the recent acceptance a step leaves, as policies see it.
        others: drafters beside the one that is named in the costs, for a policy that chooses among them.
        intermediates: who verifies between that one and the target, see :class:`Candidate`.
    """

    policy: Policy | RowPolicy | Switching | Routed
    source: Source
    remembered: float = 0.95
    others: tuple[Candidate, ...] = ()
    intermediates: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.remembered < 1:
            raise BadInput(f"remembered is {self.remembered}", allowed="0 up to, not including, 1")
        if not isinstance(self.policy, Routed) and isinstance(self.policy, Switching) != bool(self.others):
            raise BadInput(
                f"{type(self.policy).__name__} and {1 + len(self.others)} drafters",
                allowed="several drafters with a policy that chooses among them, one with any other",
            )
        if isinstance(self.policy, RowPolicy) and self.policy.weighs_confidence and self.source.unconfident:
            raise BadInput(
                f"{self.policy} weighs the drafter's confidences: {self.source.unconfident} has none",
                hint="replay a recorded trace, or take a policy that does not look at them",
            )
        weighs = isinstance(self.policy, RowPolicy) and self.policy.weighs_confidence
        if self.intermediates and (weighs or isinstance(self.policy, Goodput)):
            raise BadInput(
                f"{type(self.policy).__name__} weighs what a pair's step costs",
                allowed="with intermediates, a policy that weighs no cost, or one that chooses among chains",
            )

    @property
    def drafters(self) -> int:
        return 1 + len(self.others)

    def open(self, slots: int, seed: int) -> Verdicts:
        """Run state of the verdicts on all drafters."""
        found = [source.open(slots, seed) for source in (self.source, *(o.source for o in self.others))]
        return Several(found) if self.others or self.intermediates else found[0]


@dataclass(frozen=True)
class Serving:
    """One engine on one device (or one group of devices that act as one).

    Attributes:
        costs: what its forwards cost.
        slots: requests in the batch at most.
        speculation: None for plain decoding.
        memory: its KV blocks.
        prefill: ``whole``: a prompt is read in one step; ``chunked``: as the token budget allows.
        mixed: whether prompts are read in the same step as others decode. If not, reading goes first.
        token_budget: new tokens of a step. Rows that decode go first; then prompts in order of admission.
            A whole prompt that is larger is read on its own.
        queue_limit: requests that may wait; who comes then is rejected. None for no limit. Even with an idle
            engine a request waits until the coming step is planned, so 0 lets nobody in.
        patience_seconds: how long a request waits to be admitted before it is withdrawn; 0 lets nobody in.
        stride: compute several steps at once where nothing can change in between; the tables are the same.
    """

    costs: Costs
    slots: int
    speculation: Speculation | None = None
    memory: Memory = field(default_factory=Memory)
    prefill: Literal["whole", "chunked"] = "whole"
    mixed: bool = True
    token_budget: int = 8192
    queue_limit: int | None = None
    patience_seconds: float | None = None
    stride: bool = True

    def __post_init__(self) -> None:
        for name in ("slots", "token_budget"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} is {getattr(self, name)}", allowed="at least 1")
        if self.queue_limit is not None and self.queue_limit < 0:
            raise BadInput(f"queue_limit is {self.queue_limit}", allowed="at least 0")
        if self.prefill not in ("whole", "chunked"):
            raise BadInput(f"prefill is {self.prefill!r}", allowed="whole, chunked")
        if self.patience_seconds is not None:
            nanoseconds(self.patience_seconds, "patience_seconds")
        if self.speculation is not None and self.costs.drafter is None:
            raise BadInput("speculation needs a drafter to price", hint="name one in costs")
        middles = {name for one in self.candidates for name in one.intermediates}
        for name in middles:
            if name not in self.costs.cost.models or name == self.costs.target:
                known = self.costs.cost.models - {self.costs.target}
                raise unknown_name("intermediate", name, known, where=self.costs.cost.name)
        for name, _ in self.memory.middle_blocks:
            if self.speculation is not None and name not in middles:
                raise unknown_name("intermediate", name, middles, where="middle_blocks")

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """All chains, that of the drafter named in the costs first; none for plain decoding."""
        told, costs = self.speculation, self.costs
        if told is None or costs.drafter is None:
            return ()
        priced_by = costs.drafter_cost or costs.cost
        first = Candidate(costs.drafter, told.source, priced_by, costs.lookup, told.intermediates)
        return (first, *told.others)

    @cached_property
    def chains(self) -> tuple[Links, ...]:
        """Which models the chains use."""
        return linked(self.candidates, self.costs.cost)

    @cached_property
    def lookahead(self) -> int:
        """Tokens beyond the text that a step may need room for: the drafts, and who else adds one to them."""
        if self.speculation is None:
            return 0
        return self.speculation.policy.longest + any(links.replace for links in self.chains)
