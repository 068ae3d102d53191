"""Modules of claims with one line changed: a claim that does not notice has a rule that nobody would miss."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from types import ModuleType

import pytest

from simspec.claims.base import Against, Claim, Effort, decide


@dataclass(frozen=True)
class Weakening:
    """A line of a module put in another's place, and the claims that must miss it.

    Attributes:
        old: what stands there, once.
        ids: of those claims, separated by spaces.
        then: modules that use the changed one, each before those that use it.
    """

    name: str
    changed: ModuleType
    old: str
    new: str
    ids: str
    then: tuple[ModuleType, ...] = ()

    def __str__(self) -> str:
        return f"{self.ids}: {self.name}"

    def claims(self, monkeypatch: pytest.MonkeyPatch) -> list[Claim]:
        """The claims as they are with the line changed; modules that are not named keep theirs."""
        copies = [self._copy(one, monkeypatch) for one in dict.fromkeys((self.changed, *self.then))]
        return claims_of(copies, self.ids)

    def _copy(self, module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
        source = inspect.getsource(module)
        if module is self.changed:
            assert source.count(self.old) == 1, f"{module.__name__} has no such line any more: {self.old}"
            source = source.replace(self.old, self.new)
        copy = ModuleType(module.__name__)
        # Before it is run: those that use it, and classes of its own, find it under its name.
        monkeypatch.setitem(sys.modules, module.__name__, copy)
        # For "from package import module", which asks the package.
        package, _, name = module.__name__.rpartition(".")
        monkeypatch.setattr(sys.modules[package], name, copy)
        exec(compile(source, f"{module.__file__}, weakened", "exec"), copy.__dict__)
        return copy


def claims_of(modules: Iterable[ModuleType], ids: str) -> list[Claim]:
    """The claims of these ids, separated by spaces; each must be there once."""
    wanted = ids.split()
    found = [claim for module in modules for claim in getattr(module, "CLAIMS", ()) if claim.id in wanted]
    assert sorted(claim.id for claim in found) == sorted(wanted)
    return found


def missed(claim: Claim, effort: Effort) -> bool:
    """Whether the pinned case no longer speaks against the claim, or a broken variant is not caught."""
    if claim.pinned is not None and not isinstance(claim.statement.rule(claim.pinned), Against):
        return True
    found = (decide(one, effort, f"{claim.id} broken {i}").verdict for i, one in enumerate(claim.broken))
    return any(verdict != "refuted" for verdict in found)
