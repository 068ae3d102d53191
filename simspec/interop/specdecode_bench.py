"""SpecDecode-Bench's records: how many tokens a step would emit from each place of a text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simspec.errors import BadInput, unknown_name
from simspec.interop.lines import json_lines


@dataclass(frozen=True)
class EmittedRuns:
    """For each text and each place of it, what one target step from there would emit, bonus included.

    Attributes:
        prompt_tokens: of each text, (texts,).
        emitted: one array a text, (output tokens,), each entry at least 1.
        method: the drafter's name in the file.
    """

    prompt_tokens: NDArray[np.int64]
    emitted: tuple[NDArray[np.int64], ...]
    method: str
    source: str


def read_emitted_runs(path: Path, method: str) -> EmittedRuns:
    """``acc_<method>.acc_len`` of every line, e.g. method ``eagle``.

    Raises BadInput naming line and field: an unknown method, a count below 1, a list as long as no text.
    """
    prompts, runs = [], []
    for line, found in json_lines(path):
        if not isinstance(found, dict):
            raise BadInput(f"line {line} is no object", where=path)
        known = sorted(key.removeprefix("acc_") for key in found if key.startswith("acc_"))
        if method not in known:
            raise unknown_name("method", method, known, where=f"{path}, line {line}")
        held = found[f"acc_{method}"]
        lengths = held.get("acc_len") if isinstance(held, dict) else None
        prompt, text = found.get("prompt_token_ids"), found.get("generated_token_ids")
        if not (isinstance(lengths, list) and isinstance(prompt, list) and isinstance(text, list)):
            raise BadInput(
                f"line {line} lacks acc_{method}.acc_len, prompt_token_ids or generated_token_ids", where=path
            )
        if len(lengths) != len(text):
            raise BadInput(
                f"line {line}: {len(lengths)} entries of acc_len for {len(text)} generated tokens", where=path
            )
        bad = [n for n in lengths if type(n) is not int or not 1 <= n <= 10_000]
        if bad:
            raise BadInput(
                f"line {line}: acc_len holds {bad[0]!r}", where=path, allowed="whole numbers of at least 1"
            )
        if text:
            prompts.append(max(len(prompt), 1))
            runs.append(np.array(lengths, dtype=np.int64))
    if not runs:
        raise BadInput("holds no text with a token", where=path)
    return EmittedRuns(
        np.array(prompts, dtype=np.int64), tuple(runs), method, f"{path.name} (SpecDecode-Bench)"
    )
