"""What a scenario's requests are: when they come and how long they are, for any seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simspec.errors import BadInput
from simspec.interop.azure import read_azure
from simspec.interop.burstgpt import read_burstgpt
from simspec.interop.log import RequestLog
from simspec.interop.mooncake import read_mooncake
from simspec.interop.sharegpt import Lengths, by_characters, by_tokenizer, read_sharegpt
from simspec.provenance import sha256_file
from simspec.scenario.config import (
    ClosedLoad,
    FixedLengths,
    GammaLoad,
    LogLengths,
    LogLoad,
    PoissonLoad,
    SessionsPart,
)
from simspec.scenario.reading import Read
from simspec.serving.arrivals import ClosedLoop, Gamma, OpenLoop, Poisson, Sizes
from simspec.streams import stream

Ints = NDArray[np.int64]

READERS: dict[str, Callable[[Path], RequestLog]] = {
    "azure": read_azure,
    "burstgpt": read_burstgpt,
    "mooncake": read_mooncake,
}


@dataclass(frozen=True)
class Load:
    """A workload that can be drawn.

    Attributes:
        count: requests in all.
        process: gaps between arrivals, or clients, or the instants themselves, (count,) nanoseconds.
        sizes: the lengths; or those that lengths are drawn from.
        drawn: whether each request draws its lengths from ``sizes``, or has the one of its own place.
        logs: what each log was taken to be and what was left out of it, for the report.
        inputs: name -> hash of each file read.
        sessions: whose conversations requests belong to: drawn, or as a log has it, (count,).
    """

    count: int
    process: Poisson | Gamma | ClosedLoad | Ints
    sizes: Sizes
    drawn: bool
    logs: list[dict[str, object]]
    inputs: dict[str, str]
    sessions: SessionsPart | Ints | None = None

    @property
    def listed(self) -> bool:
        """Whether arrivals are a log's, the same under every seed."""
        return isinstance(self.process, np.ndarray)

    def workload(self, seed: int) -> OpenLoop | ClosedLoop:
        """The requests under a seed: arrivals and lengths, each from its own stream.

        Raises:
            OverflowError: when nanoseconds of arrivals do not fit 64 bits.
        """
        sizes = self.sizes
        if self.drawn:
            # One by one from one stream: a longer workload begins with the same lengths.
            chosen = stream(seed, "lengths").integers(len(sizes.prompt_tokens), size=self.count)
            sizes = Sizes(sizes.prompt_tokens[chosen], sizes.output_tokens[chosen])
        whose = self.sessions
        if isinstance(whose, SessionsPart):
            weights = np.arange(1, whose.count + 1, dtype=np.float64) ** -whose.skew
            whose = stream(seed, "sessions").choice(whose.count, self.count, p=weights / weights.sum())
        sizes = replace(sizes, sessions=whose)
        process = self.process
        if isinstance(process, ClosedLoad):
            # More clients than requests find none left.
            return ClosedLoop(min(process.clients, self.count), sizes.requests(), process.think_seconds)
        if not isinstance(process, np.ndarray):
            process = process.instants(self.count, seed)
        if (process < 0).any():  # gaps, or their sums, have come round
            raise OverflowError("instants of arrival")
        return OpenLoop(zip(map(int, process), sizes.requests(), strict=True))


def open_load(read: Read) -> Load:
    """Open the files of a scenario's workload and lengths.

    Raises:
        BadInput: naming the file, its row and column, or the key of the scenario.
    """
    workload, lengths = read.scenario.workload, read.scenario.lengths
    sessions: SessionsPart | Ints | None = read.scenario.sessions
    logs: list[dict[str, object]] = []
    inputs: dict[str, str] = {}
    process: Poisson | Gamma | ClosedLoad | Ints
    own: Sizes | None = None
    if isinstance(workload, LogLoad):
        path = read.beside(workload.path)
        log = _arrivals(workload, path)
        process, own, count = log.at_ns, Sizes(log.prompt_tokens, log.output_tokens), len(log)
        sessions = log.sessions if sessions is None else sessions
        logs.append(_described("workload", log, {"span_seconds": log.span_seconds}))
        inputs[path.name] = sha256_file(path)
    elif isinstance(workload, PoissonLoad):
        process, count = Poisson(workload.rate), workload.requests
    elif isinstance(workload, GammaLoad):
        process, count = Gamma(workload.rate, workload.variation), workload.requests
    else:
        process, count = workload, workload.requests
    if lengths is None:
        assert own is not None  # the reader of scenarios refused the rest
        return Load(count, process, own, False, logs, inputs, sessions)
    if isinstance(lengths, FixedLengths):
        alike = Sizes.alike(count, lengths.prompt_tokens, lengths.output_tokens)
        return Load(count, process, alike, False, logs, inputs, sessions)
    path = read.beside(lengths.path)
    found = _lengths(lengths, path, read)
    logs.append(_described("lengths", found, {}))
    inputs[path.name] = sha256_file(path)
    if lengths.tokenizer is not None:
        inputs["tokenizer"] = sha256_file(read.beside(lengths.tokenizer))
    return Load(count, process, Sizes(found.prompt_tokens, found.output_tokens), True, logs, inputs, sessions)


def _arrivals(workload: LogLoad, path: Path) -> RequestLog:
    log = READERS[workload.format](path)
    if workload.window is not None:
        log = log.window(*workload.window)
    if workload.requests is not None:
        if workload.requests > len(log):
            raise BadInput(
                f"workload.requests is {workload.requests}", where=path, allowed=f"at most {len(log)}"
            )
        log = log.first(workload.requests)
    if workload.time_scale is not None:
        log = log.scaled(workload.time_scale)
    if workload.rate is not None:
        log = log.at_rate(workload.rate)
    return log


def _lengths(lengths: LogLengths, path: Path, read: Read) -> RequestLog | Lengths:
    if lengths.format != "sharegpt":
        return READERS[lengths.format](path)
    if lengths.tokenizer is not None:
        counter = by_tokenizer(read.beside(lengths.tokenizer))
    else:
        assert lengths.characters_per_token is not None
        counter = by_characters(lengths.characters_per_token)
    return read_sharegpt(path, counter, lengths.turns or "first")


def _described(use: str, log: RequestLog | Lengths, more: dict[str, object]) -> dict[str, object]:
    found: dict[str, object] = {
        "use": use,
        "source": log.source,
        "unit": log.unit,
        "requests": len(log),
        "dropped": log.dropped,
        "reordered": log.reordered if isinstance(log, RequestLog) else 0,
    }
    return {**found, **more}
