"""The curves of a training show what its tables hold."""

from __future__ import annotations

import numpy as np
import pandas as pd

from simspec.report.training_curves import curves, draw_curves

LOSS = pd.DataFrame({"step": range(1, 251), "loss": np.linspace(5.0, 1.0, 250)})
HELD_OUT = pd.DataFrame(
    {
        "step": [0, 0, 250, 250],
        "category": ["all", "code", "all", "code"],
        "loss": [6.0, 6.5, 2.0, 2.5],
        "emitted_8": [1.0, 1.1, 2.0, 2.2],
    }
)


def test_both_losses_and_every_category_are_drawn():
    left, right = curves(LOSS, HELD_OUT).axes
    training, held_out = left.lines
    # 250 steps in means of three.
    assert training.get_xdata()[:2].tolist() == [3, 6]
    assert training.get_xdata()[-1] == 250
    assert training.get_ydata()[0] == LOSS["loss"][:3].mean()
    assert held_out.get_ydata().tolist() == [6.0, 2.0]
    assert {line.get_label(): line.get_ydata().tolist() for line in right.lines} == {
        "all": [1.0, 2.0],
        "code": [1.1, 2.2],
    }
    # The first loss, far above, does not press the others flat.
    assert left.get_ylim()[1] < 6.0


def test_a_training_without_held_out_texts_has_curves_too(tmp_path):
    LOSS.to_csv(tmp_path / "loss.csv", index=False)
    HELD_OUT.iloc[:0].to_csv(tmp_path / "held-out.csv", index=False)
    assert draw_curves(tmp_path).read_bytes().startswith(b"\x89PNG")
