"""What the verbs of a laboratory share: studies carried out one after another, kept, and shown on a page."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simspec.compare.asked import Asked, Study
    from simspec.cost.models import CostModel
    from simspec.report.laboratory import Laboratory
    from simspec.traces.index import Trace


@dataclass(frozen=True)
class Extras:
    """What studies take beside trace and costs, by name.

    Attributes:
        values: None where there is none.
        inputs: hashes of the files that each came from, by names that no other input has.
    """

    values: dict[str, Any] = field(default_factory=dict)
    inputs: dict[str, dict[str, str]] = field(default_factory=dict)


def wanted_studies(only: str, studies: Mapping[str, Study]) -> list[str]:
    """The names of ``--only``, in the page's order; all without it.

    Raises:
        BadInput: when a name is no study.
    """
    from simspec.errors import unknown_name

    wanted = only.split(",") if only else list(studies)
    for name in wanted:
        if name not in studies:
            raise unknown_name("study", name, studies)
    return [name for name in studies if name in wanted]


def open_costs(trace: Trace, names: list[str]) -> list[CostModel]:
    """Costs by the names of ``--cost``.

    Raises:
        BadInput: when one cannot be opened, or two would have one name.
    """
    from simspec.compare.costs import open_cost
    from simspec.errors import BadInput

    costs = [open_cost(trace, name) for name in names]
    called = [c.name for c in costs]
    if len(set(called)) < len(called):
        raise BadInput(f"--cost gives two costs of one name: {', '.join(called)}", allowed="different names")
    return costs


def carry_out(
    page: Laboratory,
    studies: Mapping[str, Study],
    trace: Trace,
    names: list[str],
    costs: list[CostModel],
    asked: Asked,
    out: Path,
    command: list[str],
    extras: Extras,
) -> None:
    """Carry out studies, those that are kept from an earlier run aside, and write the page.

    Args:
        names: of the costs, as they were asked for.
        command: words that do the same again.

    Raises:
        BadInput: when something cannot be read or written.
    """
    from simspec.compare.costs import cost_inputs
    from simspec.compare.kept import Kept, key_of
    from simspec.provenance import code_hash, provenance

    verb = page.output.verb
    inputs = {**trace.inputs, **cost_inputs(names)}
    kept, code = Kept(verb, out.with_name(f"{out.name}.studies"), out), code_hash()
    found = {}
    for name, study in studies.items():
        own = {k: v for n in study.takes for k, v in extras.inputs.get(n, {}).items()}
        key = key_of(name, asked, {**inputs, **own, "costs": " ".join(names)}, code)
        known = kept.find(name, key)
        say(verb, f"{name}: {'carried out before' if known else 'begins'}")
        if known is None:
            given = {n: extras.values[n] for n in study.takes}
            known = kept.keep(
                name, key, study.run(trace, costs, asked, lambda what: say(verb, what), **given)
            )
        found[name] = known
    head = {
        "name": trace.manifest.name,
        "origin": trace.manifest.origin,
        "target": trace.target,
        "prompts": len(trace.prompts),
        "draws": asked.draws,
    }
    every = {k: v for hashes in extras.inputs.values() for k, v in hashes.items()}
    page.write(found, head, out, provenance(command, {**inputs, **every}, asked.seed))
    kept.forget(page.sections)
    print(f"wrote {out / 'index.html'}")


def say(verb: str, what: str) -> None:
    print(f"{verb}: {what}", file=sys.stderr, flush=True)
