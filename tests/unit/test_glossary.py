"""Every column of every table is in the README's glossary."""

from pathlib import Path

import pytest

from simspec.serving.recorder import EMISSIONS, OUTAGES, REQUESTS, STEPS
from simspec.tables import CHOICES, TRACE_TABLES

README = (Path(__file__).parents[2] / "README.md").read_text()
GLOSSARY = README.partition("## Glossary")[2].partition("\n## ")[0]


@pytest.mark.parametrize(
    "table", [*TRACE_TABLES, CHOICES, STEPS, REQUESTS, EMISSIONS, OUTAGES], ids=lambda t: t.name
)
def test_columns_are_in_the_glossary(table):
    last_cells = "\n".join(line.rsplit("|", 2)[-2] for line in GLOSSARY.splitlines() if line.startswith("|"))
    missing = [c.name for c in table.columns if f"`{c.name}`" not in last_cells]
    assert not missing
