"""The policies that a sweep compares: those of its scenarios, those named beside them, and ``off``."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from simspec.errors import BadInput
from simspec.scenario.build import Built, build
from simspec.scenario.reading import Read
from simspec.scenario.speculation import (
    OffPolicy,
    PolicyKind,
    RoutedPolicy,
    SpeculationPart,
    SwitchingPolicy,
)

OFF = "off"
# What scenarios of one sweep may differ in.
_OWN = ("name", "speculation")


def policies(reads: Sequence[Read], named: Sequence[str] = ()) -> dict[str, Built]:
    """Label -> the scenario built with that policy; ``off``, the baseline, first.

    Args:
        reads: scenarios that differ in nothing but their names and their speculation.
        named: further policies for the first scenario's drafter: a kind that needs no keys, such as ``g4``,
            or a TOML inline table, such as ``{kind = "fixed", draft_tokens = 3}``.

    Raises:
        BadInput: when scenarios differ in more, a policy is named twice, or there is none but ``off``.
    """
    _check_alike(reads)
    asked = list(reads) + [_with_policy(reads[0], parse_policy(text)) for text in named]
    asked = [read for read in asked if _policy(read) is not None]
    if not asked:
        raise BadInput(
            "no policy to compare with off", where=reads[0].path, hint="name one with --policy, such as g4"
        )
    chains = {_chain(read.scenario.speculation) for read in asked if read.scenario.speculation is not None}
    found = {OFF: build(_with_policy(reads[0], OffPolicy()))}
    for read in asked:
        told = read.scenario.speculation
        assert told is not None
        label = label_of(told.policy)
        if len(chains) > 1:
            label = f"{_chain(told)}, {label}"
        if label in found:
            raise BadInput(f"policy {label!r} is there twice", where=read.path, allowed="each policy once")
        found[label] = build(read)
    return found


def parse_policy(text: str) -> PolicyKind:
    """A policy from its kind, or from a TOML inline table.

    Raises:
        BadInput: naming what is not understood, or the key that is missing or out of range.
    """
    table = text.strip()
    if not table.startswith("{"):
        table = f'{{kind = "{table}"}}'
    try:
        found: PolicyKind = msgspec.convert(tomllib.loads(f"policy = {table}")["policy"], PolicyKind)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise BadInput(
            f"--policy {text!r}: {error}",
            allowed="""a kind, such as g4, or a TOML table, such as '{kind = "fixed", draft_tokens = 3}'""",
        ) from error
    return found


def label_of(policy: PolicyKind) -> str:
    """``fixed draft_tokens=3``: the kind, and every key that is not at its default."""
    kind = type(policy).__struct_config__.tag
    parts = [str(kind)]
    for field in msgspec.structs.fields(policy):
        value = getattr(policy, field.name)
        if value != field.default:
            parts.append(f"{field.name}={msgspec.json.encode(value).decode()}")
    return " ".join(parts)


def _chain(told: SpeculationPart) -> str:
    """Who drafts and who verifies that below the target, of the first of several chains."""
    replaces = f" ({told.semantics})" if told.semantics == "funnel-replace" else ""
    return " > ".join((str(told.drafter), *told.intermediates)) + replaces


def _policy(read: Read) -> PolicyKind | None:
    told = read.scenario.speculation
    return None if told is None or isinstance(told.policy, OffPolicy) else told.policy


def _with_policy(read: Read, policy: PolicyKind) -> Read:
    told = read.scenario.speculation
    if told is None:
        if not isinstance(policy, OffPolicy):
            raise BadInput("no speculation", where=read.path, hint="it says who drafts and what is accepted")
        return read
    if isinstance(policy, SwitchingPolicy) and not told.others:
        raise BadInput(
            "policy switching and one drafter", where=read.path, hint="list others in speculation.others"
        )
    others = told.others if isinstance(policy, SwitchingPolicy | RoutedPolicy | OffPolicy) else ()
    changed: SpeculationPart = msgspec.structs.replace(told, policy=policy, others=others)
    return replace(read, scenario=msgspec.structs.replace(read.scenario, speculation=changed))


def _check_alike(reads: Sequence[Read]) -> None:
    first = reads[0]
    for other in reads[1:]:
        if _folder(other.path) != _folder(first.path):
            raise BadInput(
                "lies in another folder than the first scenario",
                where=other.path,
                hint="their paths are relative to their folder, and would mean different files",
            )
        for field in msgspec.structs.fields(first.scenario):
            if field.name in _OWN:
                continue
            ours, theirs = (getattr(read.scenario, field.name) for read in (first, other))
            if ours != theirs:
                raise BadInput(
                    f"{field.name} differs from that of {first.path.name}",
                    where=other.path,
                    allowed="scenarios of one sweep differ in name and speculation alone",
                )


def _folder(path: Path) -> Path:
    return path.parent.resolve()
