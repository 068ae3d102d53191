"""Does acceptance depend on the batch (E7)? Only decoding at several batch sizes can say."""

from __future__ import annotations

from pathlib import Path

import msgspec

from simspec.claims.empirical.finding import Finding, Question, undecided
from simspec.claims.empirical.setting import Setting
from simspec.errors import BadInput
from simspec.metrics import Estimate

SAME = Question(
    id="E7",
    words="Which drafts are accepted does not depend on the batch that a request is decoded in",
    null=(
        "no test: whatever is accepted at batch 1 is accepted at every batch, cycle by cycle; one cycle that "
        "differs refutes it"
    ),
    statistic=(
        "share of configurations (chain, length, batch above 1) decoded for real in which some cycle's "
        "drafted, accepted or emitted count is not the recorded one, which was taken at batch 1"
    ),
    source="every replay of a record at another batch size; fails where rounding depends on the shape",
    because="By construction a replay accepts the same at every batch, so a trace alone cannot tell.",
)


class Configuration(msgspec.Struct, frozen=True):
    """One configuration decoded for real, as ``simspec validate`` writes it."""

    chain: list[str]
    draft_length: int
    batch: int
    prompts: int
    counts_equal: bool | None


class Group(msgspec.Struct, frozen=True):
    """Configurations decoded on prompts of the record."""

    all: list[Configuration]


class RealDecoding(msgspec.Struct, frozen=True):
    """What ``simspec validate --json`` wrote, as far as it is asked here."""

    trace: str
    behaviour_sha256: str
    output_tokens: int
    same_prompts: Group


def read_real_decoding(path: Path) -> RealDecoding:
    """Read it; raises :class:`BadInput` naming what does not fit."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=RealDecoding)
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", where=path) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadInput(
            str(error), where=path, hint="give a document that `simspec validate --json` wrote"
        ) from error


def ask_batches(asked: Setting, real: RealDecoding | None) -> list[Finding]:
    """E7, from a real decoding of the trace's prompts; raises :class:`BadInput` for another trace's."""
    subject = "all chains"
    if real is None:
        reason = f"{SAME.because} Give a real decoding (`simspec validate --json`) beside it."
        return [undecided(SAME, subject, reason)]
    if real.behaviour_sha256 != asked.trace.manifest.behaviour_sha256:
        raise BadInput(
            f"decodes the prompts of trace {real.trace!r} with behaviour {real.behaviour_sha256[:12]}...",
            allowed=f"that of {asked.trace.manifest.name!r}, {asked.trace.manifest.behaviour_sha256[:12]}...",
        )
    told = [
        c for c in real.same_prompts.all if c.batch > 1 and len(c.chain) > 1 and c.counts_equal is not None
    ]
    if not told:
        return [undecided(SAME, subject, "nothing was drafted at a batch above 1")]
    differing = [c for c in told if not c.counts_equal]
    prompts = max(c.prompts for c in told)
    missed = 1 - 0.05 ** (1 / prompts)
    batches = ", ".join(str(b) for b in sorted({c.batch for c in told}))
    return [
        Finding(
            SAME,
            subject,
            "rejected" if differing else "not rejected",
            value=Estimate(len(differing) / len(told), None, None),
            n=prompts,
            trials=len(told),
            detectable=None if differing else missed,
            note="differing: " + "; ".join(f"{' > '.join(c.chain)} at batch {c.batch}" for c in differing)
            if differing
            else (
                f"every cycle at batches {batches} has the recorded counts, over the first "
                f"{real.output_tokens} tokens of at most {prompts} prompts. If the batch changed anything in "
                f"more than {missed:.0%} of prompts, one of {prompts} would have shown it with 95% chance"
            ),
            numbers={"configurations": len(told), "differing": len(differing)},
        )
    ]
