"""Models that a recipe names and that are not to be had, as a user meets them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.real_model  # the extra `record`; no model is loaded

RECIPE = """
name = "r"
drafters = []
prompts = []
[target]
source = "{source}"
"""


@pytest.mark.parametrize(
    ("source", "said"),
    [("hub:org/name", "the hub cannot be reached"), ("weights.bin", "pickle")],
)
def test_a_model_that_is_not_to_be_had_is_refused_with_code_2(tmp_path, source, said):
    (tmp_path / "r.toml").write_text(RECIPE.format(source=source))
    (tmp_path / "weights.bin").write_bytes(b"")
    done = subprocess.run(
        [sys.executable, "-m", "simspec", "record", "r.toml", "out"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        # A port where nobody listens, and no copies from elsewhere.
        env={**os.environ, "HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path / "hf")},
    )
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert f"source of target = '{source}'" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Retry" not in done.stderr  # transformers itself tries again and again for 50 seconds
