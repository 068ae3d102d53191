"""Acceptance and the batch: what a real decoding can say, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simspec.claims.empirical.batches import ask_batches, read_real_decoding
from simspec.claims.empirical.setting import Setting
from simspec.errors import BadInput
from simspec.strategies.traces import NO_HASH
from tests.toy import Setting as ToySetting
from tests.toy import Toy


def decoded(*equal: bool, batch: int = 4, chain: list[str] | None = None) -> dict[str, Any]:
    return {
        "trace": "toy",
        "behaviour_sha256": NO_HASH,
        "output_tokens": 12,
        "same_prompts": {
            "all": [
                {
                    "chain": chain or ["small", "target"],
                    "draft_length": 2,
                    "batch": batch,
                    "prompts": 8,
                    "counts_equal": e,
                    "measured": 1.0,
                }
                for e in equal
            ]
        },
    }


def asked() -> Setting:
    return Setting(Toy(ToySetting()).trace(), np.ones((2, 3)), 10, 0)


def written(folder: Path, document: object) -> Path:
    path = folder / "validation.json"
    path.write_text(json.dumps(document))
    return path


def test_without_a_decoding_nothing_can_be_said() -> None:
    (found,) = ask_batches(asked(), None)
    assert found.verdict == "not decidable here"
    assert "validate" in found.note


def test_equal_counts_leave_it_standing_with_what_could_be_missed(tmp_path: Path) -> None:
    (found,) = ask_batches(asked(), read_real_decoding(written(tmp_path, decoded(True, True))))
    assert found.verdict == "not rejected"
    assert found.tested is None
    # (1 - x)^8 = .05 at x = .312.
    assert found.detectable == pytest.approx(0.312, abs=1e-3)


def test_one_differing_count_refutes_it(tmp_path: Path) -> None:
    (found,) = ask_batches(asked(), read_real_decoding(written(tmp_path, decoded(True, False))))
    assert found.verdict == "rejected"
    assert found.value.value == 0.5
    assert "small > target at batch 4" in found.note


@pytest.mark.parametrize("document", [decoded(True, batch=1), decoded(True, chain=["target"]), decoded()])
def test_batch_one_and_plain_decoding_say_nothing(tmp_path: Path, document: dict[str, Any]) -> None:
    (found,) = ask_batches(asked(), read_real_decoding(written(tmp_path, document)))
    assert found.verdict == "not decidable here"


def test_another_traces_decoding_is_refused(tmp_path: Path) -> None:
    real = read_real_decoding(written(tmp_path, decoded(True) | {"behaviour_sha256": "f" * 64}))
    with pytest.raises(BadInput, match="ffffffffffff"):
        ask_batches(asked(), real)


def test_what_is_no_decoding_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="same_prompts"):
        read_real_decoding(written(tmp_path, {k: v for k, v in decoded().items() if k != "same_prompts"}))
    with pytest.raises(BadInput, match=r"validation\.json"):
        read_real_decoding(tmp_path / "validation.json" / "none")
    with pytest.raises(BadInput, match="cannot be read"):
        read_real_decoding(tmp_path / "none")
