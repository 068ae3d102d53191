"""A scenario's file read strictly: every refusal names the key, what stands there and what may."""

from __future__ import annotations

import hashlib
import math
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect

from simspec.errors import BadInput, unknown_name
from simspec.scenario.config import LogLengths, LogLoad, Scenario
from simspec.scenario.speculation import (
    ExactMarginalPolicy,
    GoodputPolicy,
    JointPolicy,
    LevelVerdicts,
    LibraSpecPolicy,
    OffPolicy,
    OtherPart,
    RoutedPolicy,
    SpeculationPart,
    SwitchingPolicy,
    TraceVerdicts,
    VerdictsKind,
)


@dataclass(frozen=True)
class Read:
    """A scenario, the file that it came from, and the SHA-256 of its bytes."""

    scenario: Scenario
    path: Path
    sha256: str

    def beside(self, name: str) -> Path:
        """A path that the file names: as it is if absolute, else from the file's folder."""
        return self.path.parent / Path(name).expanduser()


def read_scenario(path: Path) -> Read:
    """Read and check a scenario's file; files that it names are not opened yet.

    Raises:
        BadInput: naming the key that is unknown (with the nearest known one), missing or out of range.
    """
    try:
        raw = path.read_bytes()
        data = tomllib.loads(raw.decode("utf-8-sig"))
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", where=path) from error
    except UnicodeDecodeError as error:
        raise BadInput("is not UTF-8 text", where=path) from error
    except tomllib.TOMLDecodeError as error:
        raise BadInput(str(error), where=path) from error
    except (RecursionError, ValueError) as error:  # brackets without end, or a whole number of so many digits
        raise BadInput(f"is no TOML that can be read: {error}", where=path) from error
    _check(data, inspect.type_info(Scenario), "", path)
    try:
        scenario = msgspec.convert(data, Scenario)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).partition(" - at `$")
        raise BadInput(f"{place.strip('`.') or 'the file'}: {problem}", where=path) from error
    for key, problem, hint in _contradictions(scenario):
        raise BadInput(f"{key}: {problem}", where=path, hint=hint)
    return Read(scenario, path, hashlib.sha256(raw).hexdigest())


def _check(value: Any, wanted: inspect.Type, key: str, path: Path) -> None:
    """What msgspec would refuse less helpfully, or not at all: names of keys and kinds, and NaN."""
    if isinstance(value, float) and not math.isfinite(value):
        raise BadInput(f"{key} is {value}", where=path, allowed="finite numbers")
    if isinstance(wanted, inspect.UnionType):
        structs = [t for t in wanted.types if isinstance(t, inspect.StructType)]
        if isinstance(value, dict) and len(structs) > 1:
            wanted = _of_kind(value, structs, key, path)
        else:
            alike = [t for t in wanted.types if not isinstance(t, inspect.NoneType)]
            wanted = alike[0] if len(alike) == 1 else wanted
    if isinstance(wanted, inspect.StructType) and isinstance(value, dict):
        fields = {field.encode_name: field.type for field in wanted.fields}
        for name, inner in value.items():
            if name in fields:
                _check(inner, fields[name], f"{key}.{name}" if key else name, path)
            elif name != wanted.tag_field:
                raise unknown_name("key", name, fields, where=f"{path}, {f'[{key}]' if key else 'top level'}")
    elif isinstance(wanted, inspect.LiteralType) and isinstance(value, str) and value not in wanted.values:
        raise unknown_name(key, value, [str(v) for v in wanted.values], where=path)
    elif isinstance(value, list):
        item = wanted.item_type if isinstance(wanted, inspect.VarTupleType) else inspect.AnyType()
        for i, inner in enumerate(value):
            _check(inner, item, f"{key}[{i}]", path)


def _of_kind(
    value: dict[str, Any], structs: list[inspect.StructType], key: str, path: Path
) -> inspect.StructType:
    kinds = {str(t.tag): t for t in structs}
    if "kind" not in value:
        raise BadInput(f"{key} has no kind", where=path, allowed=", ".join(sorted(kinds)))
    if value["kind"] not in kinds:
        raise unknown_name(f"{key}.kind", str(value["kind"]), kinds, where=path)
    return kinds[value["kind"]]


def _contradictions(scenario: Scenario) -> Iterator[tuple[str, str, str]]:
    """Keys that do not go together: (key, problem, what to do)."""
    workload, lengths, speculation = scenario.workload, scenario.lengths, scenario.speculation
    if isinstance(workload, LogLoad):
        if workload.format == "sharegpt":
            yield (
                "workload.format",
                "a ShareGPT file has no instants of arrival",
                "take lengths from it, and arrivals from a workload of kind poisson, gamma or closed",
            )
        if workload.time_scale is not None and workload.rate is not None:
            yield "workload.rate", "time_scale is set too", "set one of them"
    elif lengths is None:
        yield "lengths", "missing", "a workload of kind log alone has lengths of its own"
    if isinstance(lengths, LogLengths):
        yield from _length_contradictions(lengths)
    if speculation is not None:
        yield from _speculation_contradictions(speculation)
    elif scenario.cluster.drafter_device is not None:
        yield "cluster.drafter_device", "nobody drafts: there is no speculation", "leave it out"
    warm_up = scenario.warm_up
    begins = ("seconds", "requests", "rule")
    yield from _one_of("warm_up", [n for n in begins if getattr(warm_up, n) is not None])
    if warm_up.of is not None and warm_up.rule is None:
        yield "warm_up.of", "means nothing without a rule", 'set warm_up.rule = "mser"'
    cool_down = scenario.cool_down
    ends = [n for n in ("seconds", "requests") if getattr(cool_down, n) is not None]
    yield from _one_of("cool_down", ends + ["drain"] * (cool_down.drain != "keep"))
    until = scenario.until_seconds
    if until is not None and warm_up.seconds is not None and warm_up.seconds >= until:
        yield "warm_up.seconds", f"{warm_up.seconds} leaves nothing before until_seconds, {until}", ""


def _one_of(section: str, said: list[str]) -> Iterator[tuple[str, str, str]]:
    if len(said) > 1:
        yield f"{section}.{said[1]}", f"{said[0]} is set too", "set one of them"


def _speculation_contradictions(told: SpeculationPart) -> Iterator[tuple[str, str, str]]:
    policy, verdicts = told.policy, told.verdicts
    if not isinstance(policy, OffPolicy):
        if verdicts is None:
            yield "speculation.verdicts", "missing", "say what the target accepts, or set policy off"
        if told.drafter is None:
            yield "speculation.drafter", "missing", "name the drafter, as the cost and the trace call it"
    traced = isinstance(verdicts, TraceVerdicts)
    if traced and told.lookup is not None:
        yield "speculation.lookup", "the trace of the verdicts says that itself", "leave it out"
    weighs = isinstance(policy, ExactMarginalPolicy | LibraSpecPolicy | JointPolicy)
    if weighs and verdicts is not None and not traced:
        yield (
            "speculation.policy",
            "this kind weighs the drafter's confidences, and these verdicts have none",
            "take verdicts of kind trace, or a policy that does not look at confidences",
        )
    if isinstance(policy, SwitchingPolicy) != bool(told.others) and not isinstance(
        policy, OffPolicy | RoutedPolicy
    ):
        yield (
            "speculation.others",
            "means nothing for this policy" if told.others else "missing",
            "kinds switching and routed, and no other, choose among several drafters",
        )
    if told.intermediates and (weighs or isinstance(policy, GoodputPolicy)):
        yield (
            "speculation.policy",
            "this kind weighs what a drafter and a target cost, and there are intermediates",
            "take one of fixed length or g4, or one that chooses among chains: switching, routed",
        )
    yield from _chain_contradictions("speculation", told, verdicts)
    for i, other in enumerate(told.others):
        own = other.verdicts or verdicts
        yield from _chain_contradictions(f"speculation.others[{i}]", other, own)
        if other.verdicts is None and not traced:
            yield f"speculation.others[{i}].verdicts", "missing", "only a trace knows several drafters"
        if isinstance(own, TraceVerdicts) and other.lookup is not None:
            yield (
                f"speculation.others[{i}].lookup",
                "the trace of the verdicts says that itself",
                "leave it out",
            )


def _chain_contradictions(
    key: str, told: SpeculationPart | OtherPart, verdicts: VerdictsKind | None
) -> Iterator[tuple[str, str, str]]:
    above = told.intermediates
    if told.semantics is not None and not above:
        yield f"{key}.semantics", "means nothing without intermediates", "name them, or leave it out"
    if len({told.drafter, *above}) <= len(above):
        yield f"{key}.intermediates", f"{list(above)} above {told.drafter!r}", "each model once in a chain"
    if told.semantics == "funnel-replace" and len(above) > 1:
        yield f"{key}.semantics", f"funnel-replace with {len(above)} intermediates", "at most one"
    if isinstance(verdicts, LevelVerdicts):
        if len(verdicts.rates) != len(above) + 1 or not above:
            yield (
                f"{key}.intermediates",
                f"{len(above)} of them, and the verdicts have {len(verdicts.rates)} rates",
                "verdicts of kind levels have a rate for each intermediate and one for the target",
            )
    elif above and verdicts is not None and not isinstance(verdicts, TraceVerdicts):
        yield (
            f"{key}.intermediates",
            "these verdicts are the target's alone",
            "take verdicts of kind trace, or made-up ones of kind levels",
        )


def _length_contradictions(lengths: LogLengths) -> Iterator[tuple[str, str, str]]:
    given = [name for name in ("characters_per_token", "tokenizer") if getattr(lengths, name) is not None]
    if lengths.format == "sharegpt":
        if len(given) != 1:
            yield (
                "lengths.characters_per_token",
                f"{'set together with' if given else 'missing, and so is'} lengths.tokenizer",
                "a ShareGPT file has texts and no counts of tokens: say how to count them, one way",
            )
    elif given or lengths.turns is not None:
        yield f"lengths.{(given or ['turns'])[0]}", f"means nothing for {lengths.format}", "leave it out"
