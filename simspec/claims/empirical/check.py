"""All questions put to a trace, as one family: what ``simspec check --trace`` shows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from simspec.claims.empirical.batches import RealDecoding, ask_batches
from simspec.claims.empirical.blocks import ask_blocks
from simspec.claims.empirical.confidence import ask_confidence
from simspec.claims.empirical.finding import FALSE_ALARMS, POWER, Finding, judged
from simspec.claims.empirical.lengths import ask_lengths
from simspec.claims.empirical.levels import ask_independence, ask_similarity
from simspec.claims.empirical.requests import ask_requests
from simspec.claims.empirical.setting import Setting, resamples, setting
from simspec.claims.empirical.texts import ask_texts
from simspec.claims.empirical.verification import ask_verification
from simspec.provenance import versions
from simspec.traces.index import Trace

VERDICTS = ("holds", "refuted", "rejected", "not rejected", "not decidable here")


def check_trace(
    trace: Trace,
    seed: int,
    draws: int,
    say: Callable[[str], None],
    real: RealDecoding | None = None,
) -> list[Finding]:
    """Decide every empirical claim on a trace.

    Args:
        seed: of the bootstrap, the sign flips and the permutations.
        draws: bootstrap draws of prompts, for intervals. P values use at least as many resamples as the
            strictest threshold needs, however few the draws.
        say: hears what is being decided.
        real: a real decoding of the trace's prompts at several batch sizes, which E7 needs.

    Returns:
        findings in the order of their ids, judged as one family (Holm, FALSE_ALARMS).

    Raises:
        BadInput: when ``real`` is of another trace.
    """
    asked = setting(trace, seed, draws)
    parts: tuple[tuple[str, Callable[[Setting], list[Finding]]], ...] = (
        ("E1: one peak over draft lengths", ask_lengths),
        ("E2: shape of the verification cost", ask_verification),
        ("E3: independence of levels", ask_independence),
        ("E4: calibration", ask_confidence),
        ("E5: stationarity", ask_texts),
        ("E6: independence along the block", ask_blocks),
        ("E7: batches", lambda asked: ask_batches(asked, real)),
        ("E8: SimScore as acceptance", ask_similarity),
        ("E9: variance between requests", ask_requests),
    )
    findings: list[Finding] = []
    for name, ask in parts:
        say(name)
        begun = time.perf_counter()
        found = ask(asked)
        each = (time.perf_counter() - begun) / len(found)
        findings += [replace(f, seconds=each) for f in found]
    findings.sort(key=lambda f: f.question.id)
    return judged(findings)


def document(findings: Sequence[Finding], trace: Trace, seed: int, draws: int) -> dict[str, Any]:
    """The findings as JSON.

    Keys: ``format``, ``trace``, ``origin``, ``prompts``, ``seed``, ``draws``, ``resamples``, ``family`` =
    {tests, level, method, power, words}, ``versions``, ``inputs`` (hashes), ``summary[]`` = {id, words,
    subjects, one count a verdict} and ``claims[]`` = {id, subject, verdict, words, null, statistic, value,
    interval (95%), n (prompts), trials, p_value, p_adjusted, family (whether it is a member), detectable,
    exact (false: these are measurements), seconds (an equal share of its claim's), source, because, note,
    numbers{}}.
    """
    tests = sum(f.tested is not None for f in findings)
    return {
        "format": "simspec data claims 1",
        "trace": trace.manifest.name,
        "origin": trace.manifest.origin,
        "prompts": len(trace.prompts),
        "seed": seed,
        "draws": draws,
        "resamples": resamples(trace, draws),
        "family": {
            "tests": tests,
            "level": FALSE_ALARMS,
            "method": "Holm",
            "power": POWER,
            "words": (
                f"{tests} tests are one family: the chance that any true null among them is rejected is held "
                f"at {FALSE_ALARMS:g} (permutations exactly; sign flips where prompts' scores are symmetric "
                f"or prompts many). An effect of size detectable is found with chance {POWER:g} even at the "
                "family's strictest step."
            ),
        },
        "versions": versions(("numpy", "scipy")),
        "inputs": trace.inputs,
        "summary": summary(findings),
        "claims": [f.as_json() for f in findings],
    }


def summary(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """One entry a claim: how many of its subjects came to which verdict."""
    found: list[dict[str, Any]] = []
    for question in dict.fromkeys(f.question for f in findings):
        mine = [f.verdict for f in findings if f.question == question]
        counts = {verdict: mine.count(verdict) for verdict in VERDICTS if verdict in mine}
        found.append({"id": question.id, "words": question.words, "subjects": len(mine), "verdicts": counts})
    return found
