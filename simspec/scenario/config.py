"""What may stand in a scenario's TOML file, as one frozen tree.

Seconds, tokens, requests and KV blocks throughout. Paths are relative to the folder of the file that
names them, so that a scenario means the same from wherever it is run.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from simspec.scenario.parts import Above, Count, Engines, Kind, Name, Natural, Part, Requests, Seconds, Slots
from simspec.scenario.speculation import SpeculationPart

LogFormat = Literal["azure", "burstgpt", "mooncake", "sharegpt"]


# -- workload: when requests come --------------------------------------------------------------------------


class PoissonLoad(Kind, tag="poisson", frozen=True):
    """``requests`` with independent exponential gaps, ``rate`` a second."""

    rate: Above
    requests: Requests


class GammaLoad(Kind, tag="gamma", frozen=True):
    """Gamma gaps; ``variation`` is their standard deviation over their mean: 1 is Poisson, more is bursts."""

    rate: Above
    variation: Annotated[float, Meta(ge=1e-6, le=100)]
    requests: Requests


class ClosedLoad(Kind, tag="closed", frozen=True):
    """``clients`` that each wait for an answer, think, and send the next; ``requests`` in all."""

    clients: Requests
    requests: Requests
    think_seconds: Seconds = 0.0


class LogLoad(Kind, tag="log", frozen=True):
    """Arrivals as a log of requests has them.

    Attributes:
        format: azure, burstgpt or mooncake; ShareGPT files have no instants.
        window: requests that arrive in [begin, end) seconds from the first.
        requests: of these, the first so many.
        time_scale: every instant times this: 0.5 doubles the load.
        rate: or scaled to this mean rate, requests a second.
    """

    format: LogFormat
    path: str
    window: tuple[Seconds, Seconds] | None = None
    requests: Count | None = None
    time_scale: Above | None = None
    rate: Above | None = None


# -- lengths: how long prompts and outputs are -------------------------------------------------------------


class FixedLengths(Kind, tag="fixed", frozen=True):
    """All alike."""

    prompt_tokens: Count
    output_tokens: Count


class LogLengths(Kind, tag="log", frozen=True):
    """Pairs of a prompt and its output, drawn from a log with repetition.

    Attributes:
        characters_per_token: a ShareGPT file has texts and no counts of tokens: counts are characters over
            this, rounded up.
        tokenizer: or a tokenizer.json that counts them (needs the package ``tokenizers``).
        turns: of a ShareGPT conversation: its first exchange, or every reply with all text before it.
    """

    format: LogFormat
    path: str
    characters_per_token: Annotated[float, Meta(gt=0, le=100)] | None = None
    tokenizer: str | None = None
    turns: Literal["first", "all"] | None = None


# -- engine, memory, cost ----------------------------------------------------------------------------------


class EnginePart(Part, frozen=True):
    """As :class:`simspec.serving.config.Serving`.

    Attributes:
        overhead_seconds: fixed time of a step; left out for the cost model's own.
        idle_seconds: what a step that decodes takes longer when speculation is on and nothing is drafted.
    """

    slots: Slots
    prefill: Literal["whole", "chunked"] = "whole"
    mixed: bool = True
    token_budget: Count = 8192
    queue_limit: Natural | None = None
    patience_seconds: Seconds | None = None
    overhead_seconds: Seconds | None = None
    idle_seconds: Seconds = 0.0


class MemoryPart(Part, frozen=True):
    """As :class:`simspec.serving.kvcache.Memory`; blocks left out are without limit.

    ``middle_blocks``: by the names of intermediates.
    """

    block_tokens: Count = 16
    target_blocks: Count | None = None
    drafter_blocks: Count | None = None
    lookahead: Literal["reserved", "used"] = "reserved"
    preemption: Literal["recompute", "swap"] = "recompute"
    block_swap_seconds: Seconds = 0.0
    middle_blocks: dict[str, Count] = field(default_factory=dict)


class GraphsPart(Part, frozen=True):
    """As :class:`simspec.serving.graphs.Graphs`; sizes ascending."""

    rows: tuple[Count, ...] = ()
    tokens: tuple[Count, ...] = ()
    beyond_factor: Annotated[float, Meta(ge=1, le=1e6)] = 1.0
    beyond_seconds: Seconds = 0.0


class CostPart(Part, frozen=True):
    """What forwards cost, as ``simspec rank --cost`` takes it.

    Tensor parallelism is part of a cost model: name the one that was measured at the target's degree, and in
    ``drafter`` the one of the drafter's.

    Attributes:
        target: a cost model's .toml file; or, with a trace, a number format of its latency table or the
            folder of a latency profile.
        drafter: the same for the drafter, where it has a device or a degree of parallelism of its own.
        graphs: sizes that forwards are padded to; left out for none.
        trace: the trace that number formats and profiles belong to; left out for the one of the verdicts.
        target_name: what the target is called there; left out for the trace's or the file's own target.
    """

    target: str
    drafter: str | None = None
    trace: str | None = None
    target_name: str | None = None
    graphs: GraphsPart | None = None


# -- several engines --------------------------------------------------------------------------------------


class SessionsPart(Part, frozen=True):
    """Requests belong to ``count`` sessions, for routing: each draws one, the n-th with weight n**-skew.

    Left out, requests belong to the sessions of their log, where it has any, or in a closed loop to their
    clients, and others to none.
    """

    count: Requests
    skew: Annotated[float, Meta(ge=0, le=10)] = 0.0


class PrefillPart(Part, frozen=True):
    """Engines that read prompts for the replicas; what is left out is as for a replica.

    Attributes:
        replicas: how many.
        drafter: whether the drafter reads prompts there too; if not, it reads them where it first drafts.
        transfer_seconds, transfer_token_seconds: how long a KV cache takes to a replica, and for each token.
    """

    replicas: Engines
    slots: Slots | None = None
    token_budget: Count | None = None
    prefill: Literal["whole", "chunked"] | None = None
    target_blocks: Count | None = None
    drafter_blocks: Count | None = None
    drafter: bool = True
    transfer_seconds: Seconds = 0.0
    transfer_token_seconds: Seconds = 0.0


class OutagePart(Part, frozen=True):
    """As :class:`simspec.serving.cluster.Outage`; numbered from 0, those that read prompts last."""

    replica: Natural
    at_seconds: Seconds
    for_seconds: Above


class FailuresPart(Part, frozen=True):
    """As :class:`simspec.serving.cluster.Failures`."""

    mean_up_seconds: Above
    mean_down_seconds: Above


class DrafterDevicePart(Part, frozen=True):
    """As :class:`simspec.serving.cluster.DrafterDevice`."""

    devices: Engines = 1
    link_seconds: Seconds = 0.0


class ClusterPart(Part, frozen=True):
    """As :class:`simspec.serving.cluster.Cluster`; all ``replicas`` are as ``engine`` and ``memory`` say."""

    replicas: Engines = 1
    routing: Literal["round-robin", "least-loaded", "session-affine"] = "round-robin"
    prefill: PrefillPart | None = None
    outages: tuple[OutagePart, ...] = ()
    failures: FailuresPart | None = None
    on_failure: Literal["restart", "resume", "lost"] = "restart"
    # Whoever starts over without end is never served.
    retries: Annotated[int, Meta(ge=0, le=1000)] = 3
    drafter_device: DrafterDevicePart | None = None


# -- what is asked of a run --------------------------------------------------------------------------------


class ObjectivesPart(Part, frozen=True):
    """Latency objectives of a request; goodput counts those that meet all that are set."""

    ttft_seconds: Above | None = None
    tpot_seconds: Above | None = None


class WarmUpPart(Part, frozen=True):
    """What figures leave out at the beginning: nothing, or what one of these says.

    Attributes:
        seconds: requests that arrive earlier are left out, and steps that begin earlier.
        requests: the same, with the instant at which the request after the first so many arrives.
        rule: the same, with an instant that is found from the run itself, each replication's own: ``mser`` is
            MSER-5, as in :mod:`simspec.scenario.mser`. What it chose is told in ``measured.mser``.
        of: what the rule looks at: ``ttft`` of requests in the order in which they came (the default), or the
            ``queue`` over time, in as many slices as requests came, up to the last arrival.
    """

    seconds: Seconds | None = None
    requests: Natural | None = None
    rule: Literal["mser"] | None = None
    of: Literal["ttft", "queue"] | None = None


class CoolDownPart(Part, frozen=True):
    """What figures leave out at the end: nothing, the drain to empty included, or what one of these says.

    Attributes:
        seconds: requests that arrive in the last so many seconds before the last arrival, or at it, and steps
            that begin then or later.
        requests: the same, with the instant at which the first of the last so many arrives.
        drain: ``leave-out``: steps that begin at the last arrival or later, and no request.
    """

    seconds: Seconds | None = None
    requests: Natural | None = None
    drain: Literal["keep", "leave-out"] = "keep"


class Scenario(Part, frozen=True):
    """A whole scenario.

    Attributes:
        lengths: left out where the workload is a log, which has its own.
        until_seconds: the simulation stops then; left out: when all are served.
        emissions: keep who emitted how much in every step: slower, a table more, and times between tokens
            are known under every option.
    """

    name: Name
    workload: PoissonLoad | GammaLoad | ClosedLoad | LogLoad
    engine: EnginePart
    cost: CostPart
    lengths: FixedLengths | LogLengths | None = None
    memory: MemoryPart = MemoryPart()
    cluster: ClusterPart = ClusterPart()
    sessions: SessionsPart | None = None
    speculation: SpeculationPart | None = None
    objectives: ObjectivesPart = ObjectivesPart()
    warm_up: WarmUpPart = WarmUpPart()
    cool_down: CoolDownPart = CoolDownPart()
    seed: Natural = 0
    until_seconds: Above | None = None
    emissions: bool = False
