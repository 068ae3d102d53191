"""What a scenario says of speculation: who drafts, how much, and what is accepted."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from simspec.scenario.parts import Above, Count, Kind, Length, Longest, Natural, Part, Probability


class OffPolicy(Kind, tag="off", frozen=True):
    """Plain decoding: speculation is not there at all."""


class FixedPolicy(Kind, tag="fixed", frozen=True):
    """Always ``draft_tokens``; 0 is speculation that is on and drafts nothing."""

    draft_tokens: Length


class OffAbovePolicy(Kind, tag="off-above", frozen=True):
    """``draft_tokens`` until more than ``off_above`` rows decode, then none until at most ``on_at`` do."""

    draft_tokens: Length
    off_above: Natural
    on_at: Natural


class ByRowsPolicy(Kind, tag="by-rows", frozen=True):
    """[fewest rows, most rows, draft tokens] each, as vLLM's num_speculative_tokens_per_batch_size."""

    table: Annotated[tuple[tuple[Count, Count, Length], ...], Meta(min_length=1)]


class GoodputPolicy(Kind, tag="goodput", frozen=True):
    """The length with the most expected tokens a second, by recent acceptance (arXiv 2406.14066)."""

    longest: Length
    prior: Probability = 0.7
    prior_drafts: Above = 50.0
    probe_every: Natural = 64


class ByRowsAndContextPolicy(Kind, tag="by-rows-and-context", frozen=True):
    """[fewest rows, most rows, fewest context, most context, draft tokens] each; context is a row's mean."""

    table: Annotated[tuple[tuple[Count, Count, Natural, Natural, Length], ...], Meta(min_length=1)]


class G4Policy(Kind, tag="g4", frozen=True):
    """Each row: two more after a block that was accepted whole, one less after any rejection."""

    first: Longest = 5
    up: Natural = 2
    down: Natural = 1
    longest: Longest = 20


class LibraSpecPolicy(Kind, tag="libraspec", frozen=True):
    """Each row: LibraSpec's Algorithm 1 as printed (arXiv 2608.08721). It drafts whole blocks.

    Attributes:
        longest: its own bound, which it exceeds by up to floor(alpha) - 1.
        cut: drafts beyond so many are cut; left out for all that it may draft, or that verdicts know.
    """

    alpha: Above = 2.2
    block: Longest = 16
    longest: Longest = 24
    cut: Longest | None = None


class ExactMarginalPolicy(Kind, tag="exact-marginal", frozen=True):
    """Each row: stop at the first token that does not raise expected tokens a second (arXiv 2606.01813)."""

    longest: Longest = 24


class JointPolicy(Kind, tag="joint", frozen=True):
    """All rows' drafts by descending survival, while the step's tokens a second rise (arXiv 2607.05147).

    Attributes:
        full_scan: go on to the end and take the best.
    """

    longest: Longest
    full_scan: bool = False


class SwitchingPolicy(Kind, tag="switching", frozen=True):
    """The drafter and the length with the most expected tokens a second, by recent acceptance.

    Attributes:
        margin: a drafter is left for one that is better by this share.
        horizon: steps over which the time to catch up is spread.
    """

    longest: Length
    margin: Annotated[float, Meta(ge=0, le=1e9)] = 0.05
    horizon: Count = 32
    prior: Probability = 0.7
    prior_drafts: Above = 50.0


class RoutedPolicy(Kind, tag="routed", frozen=True):
    """The chain and the length of least expected time a token, by Eq. 7 (arXiv 2505.07680).

    Attributes:
        lengths: draft lengths to choose from; 0 is plain decoding.
        every: steps between two choices.
        margin: what is in use is left for what is better by this share.
        variant: which reading of Eq. 7.
    """

    lengths: tuple[Length, ...]
    every: Count = 16
    margin: Annotated[float, Meta(ge=0, le=1e9)] = 0.05
    variant: Literal["reach", "reach-wide", "funnel", "exact"] = "reach"
    prior: Probability = 0.7
    prior_drafts: Above = 50.0


class TraceVerdicts(Kind, tag="trace", frozen=True):
    """Replayed from a recorded trace."""

    path: str


class AccLenVerdicts(Kind, tag="acc_len", frozen=True):
    """Replayed from SpecDecode-Bench's JSONL; ``longest`` drafts were verified when it was made."""

    path: str
    method: str
    longest: Annotated[int, Meta(ge=1, le=1024)]


class RateVerdicts(Kind, tag="rates", frozen=True):
    """``survival[j]``: the probability that the first j + 1 drafts are all accepted."""

    survival: tuple[Probability, ...]


class IidVerdicts(Kind, tag="iid", frozen=True):
    """Every draft accepted with one ``rate``, given all before it were."""

    rate: Probability
    longest: Length


class MeanVerdicts(Kind, tag="mean", frozen=True):
    """Every step accepts the mean that these survivals have."""

    survival: tuple[Probability, ...]


class LevelVerdicts(Kind, tag="levels", frozen=True):
    """Made up: a token of each level accepted by the next with one of the ``rates``, given all before were.

    The drafter's first; levels are independent of each other.
    """

    rates: tuple[Probability, ...]
    longest: Length


# msgspec tells kinds of one union apart by their tag.
PolicyKind = (
    OffPolicy
    | FixedPolicy
    | OffAbovePolicy
    | ByRowsPolicy
    | ByRowsAndContextPolicy
    | GoodputPolicy
    | G4Policy
    | LibraSpecPolicy
    | ExactMarginalPolicy
    | JointPolicy
    | SwitchingPolicy
    | RoutedPolicy
)
VerdictsKind = TraceVerdicts | AccLenVerdicts | RateVerdicts | IidVerdicts | MeanVerdicts | LevelVerdicts
Funnel = Literal["funnel-truncate", "funnel-replace"]


class OtherPart(Part, frozen=True):
    """A further chain, for the policy that chooses among them.

    Attributes:
        drafter: its name in its cost, and in the trace.
        verdicts: on its drafts; left out for the trace that the verdicts on the first drafter come from.
        lookup: whether it is a look-up; a trace of verdicts knows that itself.
        cost: as ``cost.drafter``; left out for what prices the target.
        intermediates, semantics: as :class:`SpeculationPart`.
    """

    drafter: str
    verdicts: VerdictsKind | None = None
    lookup: bool | None = None
    cost: str | None = None
    intermediates: tuple[str, ...] = ()
    semantics: Funnel | None = None


class SpeculationPart(Part, frozen=True):
    """Who drafts, how much, and what is accepted.

    Attributes:
        others: chains beside this one, for a policy of kind switching or routed.
        drafter: its name in the cost and in the trace.
        intermediates: models that verify between drafter and target, the drafter's neighbour first; what
            prices the target prices them.
        semantics: what they hand up: ``funnel-truncate`` (left out): what they agree with;
            ``funnel-replace``: that and a token of their own, for at most one intermediate.
        lookup: whether it is a look-up; a trace of verdicts knows that itself.
        remembered: how much of the recent acceptance a step leaves, as policies see it.
    """

    policy: PolicyKind
    verdicts: VerdictsKind | None = None
    drafter: str | None = None
    lookup: bool | None = None
    others: tuple[OtherPart, ...] = ()
    intermediates: tuple[str, ...] = ()
    semantics: Funnel | None = None
    remembered: Annotated[float, Meta(ge=0, lt=1)] = 0.95
