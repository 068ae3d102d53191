"""Times of forwards in a CSV of public reports, which is free text in places.

Only what can be read without guessing becomes a case; the rest is counted by reason.
"""

from __future__ import annotations

import csv
import math
import re
from pathlib import Path

from simspec.cost.published import Case, Cases, NotCompared
from simspec.errors import BadInput

# Reports of single requests hardly ever state the context; at batch 1 it matters little.
ASSUMED_CONTEXT = 512


COLUMNS = (
    "id",
    "url",
    "hardware",
    "target",
    "draft",
    "batch_or_concurrency",
    "k",
    "t_draft_ms",
    "t_target1_ms",
    "t_verify_ms",
)


def read_reports(path: Path) -> Cases:
    """Times of forwards in a CSV of public reports, as far as they can be read without guessing.

    A row may hold three: the target alone (``t_target1_ms``), its verification of ``k`` drafts
    (``t_verify_ms``, ``k + 1`` wide), and a draft model's token (``t_draft_ms``).

    Raises:
        BadInput: when the file cannot be read or lacks a column.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            missing = [c for c in COLUMNS if c not in (reader.fieldnames or [])]
            if missing:
                raise BadInput(f"has no column {missing[0]!r}", where=path, allowed=", ".join(COLUMNS))
            rows = list(reader)
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", where=path) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise BadInput(f"is not CSV text: {error}", where=path) from error
    found = Cases()
    seen: set[tuple[object, ...]] = set()
    for row in rows:
        for column in ("t_target1_ms", "t_verify_ms", "t_draft_ms"):
            if not (row[column] or "").strip():
                continue
            name = f"{row['id']}/{column}"
            case = _case(row, column, name)
            if isinstance(case, Case):
                key = (case.source, case.device, case.architecture, case.rows, case.width, case.published_ms)
                if key not in seen:
                    seen.add(key)
                    found.cases.append(case)
                    continue
                case = "repeats another row of the same report"
            found.not_compared.append(NotCompared(name, row["url"] or "not stated", case))
    return found


# How reports write the devices that there are presets for. A card's memory, a driver or an operating
# system beside the name does not change the roofline; "2x" or "TP" does.
_DEVICES = {
    r"(1x )?A100( 80GB)?( \(1x\))?": ("a100-80g-sxm", "the 80 GB SXM card"),
    r"(1x )?H100( 80GB)?": ("h100-sxm", "the SXM card"),
    r"(1x )?H200": ("h200", ""),
    r"(1x )?L4( 24GB)?": ("l4", ""),
    r"RTX 4090( 24GB)?( WSL2)?": ("rtx-4090", ""),
    r"RTX 3090( 24GB)?": ("rtx-3090", ""),
    r"RTX 3060 12GB": ("rtx-3060-12g", ""),
    r"Apple M2 Max.*": ("m2-max-38", "the GPU of 38 cores"),
}


_SEVERAL = re.compile(r"\b[2-9]\d*\s?[x×]|\bTP\b|TP=?\d|\bPP\b|\bGPUs\b|\+", re.IGNORECASE)


_MODELS = {
    r"Llama-(2-)?7B(-chat)?": "Llama-2-7b",
    r"(Meta-)?Llama-3(\.1)?-8B(-Instruct)?": "Llama-3.1-8B",
    r"Qwen2(\.5)?(-Coder)?-7B(-Instruct)?": "Qwen2.5-7B",
    r"Qwen3-4B": "Qwen3-4B",
    r"Qwen3-8B": "Qwen3-8B",
    r"TinyLlama(-1\.1B)?(-Chat)?": "TinyLlama-1.1B",
    r"llama-68m": "llama-68m",
    r"llama-160m": "llama-160m",
}


# Bytes a weight of formats that store every matrix alike, scales included. Mixtures such as Q4_K_M do not.
_QUANTISED = {
    "q8_0": 34 / 32,
    "q4_0": 18 / 32,
    "q4_1": 20 / 32,
    "f16": 2.0,
    "fp16": 2.0,
    "bf16": 2.0,
    "fp8": 1.0,
}


def _case(row: dict[str, str], column: str, name: str) -> Case | str:
    """The case that one time of a row is, or why it is none."""
    published = _number(row[column])
    if published is None:
        return "the time is not a single number"
    hardware = _device(row["hardware"].strip())
    if hardware is None:
        several = _SEVERAL.search(row["hardware"])
        return "several devices" if several else "no preset for the device"
    model = _model((row["draft"] if column == "t_draft_ms" else row["target"]).strip())
    if isinstance(model, str):
        return model
    architecture, weight_bytes, stated = model
    rows = row["batch_or_concurrency"].strip()
    if not rows.isdigit() or int(rows) < 1:
        return "the batch is not a number"
    width = 1
    if column == "t_verify_ms":
        if not (row["k"] or "").strip().isdigit():
            return "the number of verified drafts is not a number"
        width = int(row["k"]) + 1
    device, guess = hardware
    guesses = [guess, f"context {ASSUMED_CONTEXT}", "" if stated else "16-bit weights"]
    return Case(
        id=name,
        source=row["url"] or "not stated",
        assumed=", ".join(g for g in guesses if g),
        device=device,
        architecture=architecture,
        dtype="float16",
        rows=int(rows),
        width=width,
        context=ASSUMED_CONTEXT,
        published_ms=published,
        weight_bytes=weight_bytes,
    )


def _number(text: str) -> float | None:
    """``13.19`` or ``2273 (0.44 t/s)``; anything else is not one number of milliseconds."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(\(~?[\d.]+ t/s\))?\s*", text)
    value = float(match.group(1)) if match else math.nan
    return value if value > 0 and math.isfinite(value) else None


def _device(text: str) -> tuple[str, str] | None:
    for pattern, found in _DEVICES.items():
        if re.fullmatch(pattern, text, re.IGNORECASE):
            return found
    return None


def _model(text: str) -> tuple[str, float | None, bool] | str:
    """Architecture, bytes a weight where they are not the format's own, and whether they are stated."""
    name, _, rest = text.partition(" ")
    architecture = next((a for p, a in _MODELS.items() if re.fullmatch(p, name, re.IGNORECASE)), None)
    if architecture is None:
        return "no preset for the model"
    if not rest:
        return architecture, None, False
    if rest.lower() not in _QUANTISED:
        return "weights in a format of mixed or unknown size"
    return architecture, _QUANTISED[rest.lower()], True
