"""Whether another trace can stand beside the one that costs come from."""

from __future__ import annotations

from collections.abc import Sequence

from simspec.cost.models import CostModel
from simspec.errors import BadInput
from simspec.traces.index import Trace


def check_models(trace: Trace, other: Trace) -> None:
    """Refuse a trace whose models are not those of ``trace``: prices and comparisons go by their names.

    Raises:
        BadInput: when it has another target, another model under a name, or none of the drafters.
    """
    mine, theirs = trace.manifest.models, other.manifest.models
    if other.target != trace.target:
        raise BadInput(f"target {other.target!r}", where=other.folder, allowed=repr(trace.target))
    for name in (n for n in theirs if n in mine):
        if difference := mine[name].unlike(theirs[name]):
            raise BadInput(f"model {name!r} is another one: {difference}", where=other.folder)
    if not any(d in trace.drafters for d in other.drafters):
        raise BadInput(
            f"drafters {', '.join(other.drafters) or 'none'}",
            where=other.folder,
            allowed=f"some of {', '.join(trace.drafters)}",
        )


def check_sampled(trace: Trace, sampled: Trace, costs: Sequence[CostModel]) -> None:
    """Refuse what :func:`simspec.compare.libraspec.sampling.study` cannot set beside ``trace``.

    Raises:
        BadInput: when its texts are greedy, its models others, or a cost prices none of its drafters.
    """
    if sampled.manifest.sampling is None:
        raise BadInput("texts are greedy", where=sampled.folder, allowed="a trace of sampled texts")
    check_models(trace, sampled)
    drafters = [d for d in sampled.drafters if d in trace.drafters]
    for cost in costs:
        if not any(d in cost.models for d in drafters):
            raise BadInput(f"cost {cost.name!r} prices none of {', '.join(drafters)}", where=sampled.folder)
