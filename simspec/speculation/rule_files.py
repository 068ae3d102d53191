"""Length rules from small files: ``rule = <kind>`` and any of its parameters.

A part that is a set of parameters itself is a table, or false where the rule goes without it.
The folder ``rules`` holds the published ones; a file's comments say where its numbers are from.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias, cast, get_args, get_type_hints

import msgspec

from simspec.errors import BadInput, unknown_name
from simspec.speculation.lengths import G4, ExactMarginal, LengthRule, LibraSpec, Static
from simspec.speculation.lengths_libraspec import ClampedLibraSpec, RepairedLibraSpec, TheoremLibraSpec
from simspec.speculation.lengths_thresholds import FailFast, SpecDecPlusPlus, Svip, WeakToken
from simspec.speculation.planners_as_drafted import LongRunAsDrafted
from simspec.speculation.planners_engines import BanditSpec, EmaWalk, GoodputByPlace, GoodputByRate
from simspec.speculation.planners_joint import DCut, DSpark
from simspec.speculation.planners_longrun import LongRun
from simspec.speculation.planning import EachAlone, Planner

Rule: TypeAlias = LengthRule | Planner

FOLDER = Path(__file__).parent / "rules"

# What a file's ``rule`` may say: rules of a request, and planners of a server.
ALONE: Mapping[str, type[Any]] = {
    "static": Static,
    "schedule": G4,
    "libraspec": LibraSpec,
    "libraspec-clamped": ClampedLibraSpec,
    "libraspec-theorem": TheoremLibraSpec,
    "libraspec-repaired": RepairedLibraSpec,
    "exact-marginal": ExactMarginal,
    "weak-token": WeakToken,
    "failfast": FailFast,
    "svip": Svip,
    "specdec++": SpecDecPlusPlus,
}
TOGETHER: Mapping[str, type[Any]] = {
    "ema-walk": EmaWalk,
    "goodput-by-place": GoodputByPlace,
    "goodput-by-rate": GoodputByRate,
    "banditspec": BanditSpec,
    "dspark": DSpark,
    "d-cut": DCut,
    "long-run": LongRun,
    "long-run-as-drafted": LongRunAsDrafted,
}
# Rules of a request that weigh what cycles cost; the others are blind to it (a law checks which).
WEIGH_COST = (ExactMarginal, RepairedLibraSpec)


def read_rule(path: Path) -> Rule:
    """The rule in a file.

    Raises:
        BadInput: naming the file, and the parameter and value that it cannot use.
    """
    try:
        told = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", where=path) from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadInput(f"is no TOML: {error}", where=path) from error
    kinds = {**ALONE, **TOGETHER}
    kind = told.pop("rule", None)
    if not isinstance(kind, str):
        raise BadInput(f"rule is {kind!r}", where=path, allowed=", ".join(sorted(kinds)))
    if kind not in kinds:
        raise unknown_name("rule", kind, kinds, where=path)
    return cast("Rule", _made(kinds[kind], told, path))


def _made(kind: type[Any], told: Mapping[str, Any], path: Path, within: str = "") -> Any:
    types = get_type_hints(kind, include_extras=True)
    known = {f.name: types[f.name] for f in fields(kind)}
    given = {}
    for name, value in told.items():
        if name not in known:
            raise unknown_name("parameter", f"{within}{name}", [f"{within}{k}" for k in known], where=path)
        given[name] = _value(known[name], value, path, f"{within}{name}")
    for wanted in fields(kind):
        if wanted.name not in given and wanted.default is wanted.default_factory is MISSING:
            raise BadInput(f"no {wanted.name}", where=path, allowed=", ".join(known))
    try:
        return kind(**given)
    except BadInput as error:
        raise BadInput(error.problem, where=path, allowed=error.allowed) from error


def _value(kind: Any, value: Any, path: Path, name: str) -> Any:
    part = next((k for k in get_args(kind) if is_dataclass(k)), None)
    if isinstance(part, type):
        if value is False:
            return None
        if not isinstance(value, dict):
            raise BadInput(f"{name} is {value!r}", where=path, allowed="a table, or false")
        return _made(part, value, path, f"{name}.")
    try:
        found = msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise BadInput(f"{name} is {value!r}: {error}", where=path) from error
    if isinstance(value, float) and not math.isfinite(value):
        raise BadInput(f"{name} is {value!r}", where=path, allowed="a finite number")
    return found


def shortened(rule: Rule, depth: int) -> Rule:
    """The rule on a record whose blocks have ``depth`` tokens: no ``longest`` and no ``block`` above that.

    LibraSpec's printed rule can go past its ``longest`` by floor(alpha) - 1, and is given room for that.
    """
    changed, any_rule, room = {}, cast("Any", rule), depth
    named = {f.name for f in fields(any_rule)}
    if type(rule) is LibraSpec:
        room = max(depth + 1 - math.floor(max(rule.alpha, 1.0)), 1)
    for name in ("longest", "block"):
        if name in named and getattr(rule, name) > room:
            changed[name] = room
    short: Rule = replace(any_rule, **changed)
    return short


def published(depth: int) -> dict[str, Rule]:
    """Every rule of ``rules/`` by its file's name, for blocks of ``depth`` tokens."""
    return {path.stem: shortened(read_rule(path), depth) for path in sorted(FOLDER.glob("*.toml"))}


def published_alone(depth: int) -> dict[str, LengthRule]:
    """Those of them that are rules of a request."""
    kinds = tuple(ALONE.values())
    return {n: cast("LengthRule", r) for n, r in published(depth).items() if isinstance(r, kinds)}


def as_planner(rule: Rule) -> Planner:
    """A rule of a request for every row by itself; a planner as it is."""
    if isinstance(rule, tuple(ALONE.values())):
        return EachAlone(cast("LengthRule", rule))
    return cast("Planner", rule)
