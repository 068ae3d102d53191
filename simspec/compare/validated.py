"""A document of ``simspec validate`` as a cost and as measured times of chains."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from simspec.compare.validation import Overhead
from simspec.cost.models import MeasuredCost
from simspec.cost.shape import StepShape
from simspec.errors import BadInput
from simspec.speculation.chains import Chain, Semantics
from simspec.tables import LATENCY
from simspec.traces.index import Trace

Floats = NDArray[np.float64]


class CostWithOverhead:
    """Forwards as ``cost`` has them, and what comes beside them; look-ups have nothing beside them."""

    def __init__(self, cost: MeasuredCost, overhead: Overhead, target: str, lookups: set[str]) -> None:
        self.cost, self.overhead, self.target, self.lookups = cost, overhead, target, lookups
        self.name, self.label = cost.name, cost.label
        self.step_overhead_seconds = overhead.cycle

    @property
    def models(self) -> frozenset[str]:
        return self.cost.models

    def forward_seconds(self, model: str, shape: StepShape) -> Floats:
        found = self.cost.forward_seconds(model, shape)
        if model in self.lookups:
            return found
        beside = self.overhead.forward + self.overhead.word * shape.rows * shape.width
        # Every request that runs in a cycle is in the target's forward, once.
        return np.asarray(found + beside + (self.overhead.row * shape.rows if model == self.target else 0.0))


class TimedModel(msgspec.Struct, frozen=True):
    """Median seconds of a model's forwards, one entry for each of contexts x rows x widths."""

    model: str
    device: str
    dtype: str
    repetitions: int
    contexts: list[int]
    rows: list[int]
    widths: list[int]
    seconds: list[list[list[float]]]

    def latency(self) -> pd.DataFrame:
        """As rows of the latency table, the median as the only repetition."""
        kept = [
            (self.model, self.device, self.dtype, rows, width, context, 0, self.seconds[c][r][w])
            for c, context in enumerate(self.contexts)
            for r, rows in enumerate(self.rows)
            for w, width in enumerate(self.widths)
        ]
        return pd.DataFrame(kept, columns=LATENCY.schema.names)


def timed_models(latency: pd.DataFrame) -> list[dict[str, Any]]:
    """A latency table as :class:`TimedModel` says, plain data."""
    found = []
    for (model, device, dtype), rows in latency.groupby(["model", "device", "dtype"], sort=False):
        cells = rows.groupby(["context", "batch", "new_tokens"])["seconds"]
        medians = cells.median()
        contexts, sizes, widths = (medians.index.unique(level).tolist() for level in range(3))
        shape = len(contexts), len(sizes), len(widths)
        found.append(
            msgspec.to_builtins(
                TimedModel(
                    str(model),
                    str(device),
                    str(dtype),
                    int(cells.size().min()),
                    contexts,
                    sizes,
                    widths,
                    medians.to_numpy().reshape(shape).tolist(),
                )
            )
        )
    return found


class Configuration(msgspec.Struct, frozen=True):
    """One configuration; fields as in :class:`simspec.compare.validation.Compared`."""

    chain: list[str]
    semantics: str
    draft_length: int
    batch: int
    measured: float
    spread: float
    predicted: float
    measured_forward: float
    predicted_forward: float
    unit_seconds: list[float]
    unit_tokens: list[int]
    priced_by_tokens: float
    priced_by_slots: float

    @property
    def candidate(self) -> tuple[Chain, int]:
        semantics: Semantics = self.semantics or "funnel-truncate"  # type: ignore[assignment]
        return Chain(tuple(self.chain), semantics), self.draft_length


class Configurations(msgspec.Struct, frozen=True):
    all: list[Configuration]


class Validation(msgspec.Struct, frozen=True):
    """What a study needs of the document.

    Attributes:
        forwards: timed in the same run.
        decoded: by batch size, the prompts of each batch that was decoded, as rows of the record.
        fitted: prompts of the record of the same kind that were not decoded.
    """

    trace: str
    behaviour_sha256: str
    device: str
    dtype: str
    machine: dict[str, Any]
    rounds: int
    output_tokens: int
    forwards: list[TimedModel]
    overhead_seconds: Overhead
    decoded: dict[str, list[list[int]]]
    fitted: list[int]
    same_prompts: Configurations

    def cost(self, trace: Trace) -> CostWithOverhead:
        """The forwards that were timed, as a cost."""
        latency = pd.concat([m.latency() for m in self.forwards])
        label = (
            f"{self.dtype} on {self.device}, forwards timed in the run that is predicted, padded rows, "
            f"{latency['batch'].max()} rows at most"
        )
        lookups = {d for d in trace.drafters if trace.is_lookup(d)}
        cost = MeasuredCost(latency, self.dtype, "validation", label)
        return CostWithOverhead(cost, self.overhead_seconds, trace.target, lookups)


def read_validation(document: dict[str, Any], trace: Trace) -> Validation:
    """Check that a document is of ``trace`` and whole.

    Raises:
        BadInput: when it is another record's, or lacks what earlier versions did not keep.
    """
    if document.get("behaviour_sha256") != trace.manifest.behaviour_sha256:
        raise BadInput(
            f"decodes the prompts of trace {document.get('trace')!r} with behaviour "
            f"{str(document.get('behaviour_sha256'))[:12]}",
            where="validation",
            allowed=f"that of {trace.manifest.name!r}, {trace.manifest.behaviour_sha256[:12]}",
        )
    try:
        return msgspec.convert(document, Validation)
    except msgspec.ValidationError as error:
        raise BadInput(
            f"does not hold what is needed: {error}", where="validation", hint="measure with simspec validate"
        ) from error
