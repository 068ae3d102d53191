"""The cache's bookkeeping, counted by hand; what holds for every input is in laws/test_slots.py."""

from __future__ import annotations

import numpy as np
import pytest

from simspec.speculation.slots import Slots


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def drawn(mask: np.ndarray) -> list[str]:
    """Rows of a mask as text: x where it is true."""
    return ["".join("x" if one else "." for one in row) for row in mask]


@pytest.fixture
def ragged() -> Slots:
    """Two rows after 4 tokens each, of which row 0 keeps 1 and row 1 keeps 3: x... and xxx."""
    slots = Slots(2)
    slots.append(ints(4, 4))
    slots.roll_back(ints(1, 3))
    slots.truncate()
    return slots


def test_a_batch_cycle_by_cycle(ragged):
    # Row 1 holds slot 2, so one of four slots goes; row 0 has rolled back 3 and keeps two holes.
    assert drawn(ragged.valid) == ["x..", "xxx"]
    assert ragged.lengths.tolist() == [1, 3]
    assert (ragged.slots, ragged.needed, ragged.wasted.tolist()) == (3, 3, [2, 0])

    added = ragged.append(ints(2, 1))
    assert (added.first_slot, added.width) == (3, 2)
    assert added.positions.tolist() == [[1, 2], [3, 4]]  # from the row's length, not from the slot
    assert drawn(added.mask[0]) == ["x..x.", "x..xx"]
    assert drawn(added.mask[1]) == ["xxxx.", "xxxxx"]  # the second is padding, and sees itself
    assert drawn(ragged.valid) == ["x..xx", "xxxx."]

    source = ragged.compact()
    assert source[0, :3].tolist() == [0, 3, 4]
    assert source[1].tolist() == [0, 1, 2, 3]
    assert source[0, 3] == 3  # behind the row's tokens: stays where it is, and is not valid
    assert drawn(ragged.valid) == ["xxx.", "xxxx"]
    ragged.check_integrity()


def test_positions_go_on_from_what_is_kept(ragged):
    ragged.roll_back(ints(0, 2))
    assert ragged.append(ints(2, 2)).positions.tolist() == [[0, 1], [2, 3]]


def test_no_mask_where_causal_order_is_right():
    slots = Slots(3)
    assert slots.append(ints(3, 3, 3)).mask is None
    # Padding stands behind a row's tokens, where causal order hides it ...
    assert slots.append(ints(2, 1, 2)).mask is None
    # ... and in front of the next ones, where it does not, unless the row with padding gets none.
    slots.roll_back(ints(4, 4, 4))
    slots.truncate()
    assert slots.append(ints(1, 1, 1)).mask is None
    slots.roll_back(ints(5, 4, 5))
    assert slots.append(ints(1, 0, 1)).mask is None
    # A row with a hole needs a mask whichever row is the widest.
    assert slots.append(ints(2, 1, 2)).mask is not None


def test_a_row_of_padding_alone_sees_itself():
    slots = Slots(2)
    slots.append(ints(2, 2))
    slots.finish(ints(0))
    slots.roll_back(ints(0, 1))
    added = slots.append(ints(0, 2))
    assert added.positions[0].tolist() == [0, 1]
    assert drawn(added.mask[0]) == ["..x.", "...x"]


def test_finished_rows_leave_the_minimum():
    slots = Slots(2)
    slots.append(ints(5, 2))
    assert slots.truncate() == 5
    slots.finish(ints(0))
    assert slots.wasted.tolist() == [0, 3]  # a finished row wastes nothing: it is on its way out
    assert slots.needed == 2
    assert slots.truncate() == 2
    slots.finish(ints(1))
    assert slots.truncate() == 0
    slots.check_integrity()


def test_removing_and_joining(ragged):
    assert ragged.join(2).tolist() == [2, 3]
    assert drawn(ragged.valid) == ["x..", "xxx", "...", "..."]
    assert ragged.wasted.tolist() == [2, 0, 3, 3]
    ragged.finish(ints(1))
    ragged.remove(ints(3, 0))
    assert drawn(ragged.valid) == ["...", "x.."]
    assert ragged.lengths.tolist() == [0, 1]
    assert ragged.finished.tolist() == [False, False]
    ragged.append(ints(1, 0))  # a row that joined may be filled
    ragged.check_integrity()


def test_the_rule_is_a_strict_inequality():
    slots = Slots(2)
    slots.append(ints(8, 8))
    slots.append(ints(3, 0))
    slots.roll_back(ints(8, 8))  # 11 slots for 8 tokens
    assert slots.should_compact(0.25, 0)  # 11 > 8 * 1.25
    assert not slots.should_compact(0.25, 1)  # 11 = 8 * 1.25 + 1
    assert not slots.should_compact(0.375, 0)  # 11 = 8 * 1.375
    assert slots.should_compact(0, 2)


@pytest.mark.parametrize("rows", [0, 3])
def test_nothing_held(rows):
    slots = Slots(rows)
    assert (slots.slots, slots.needed, slots.truncate()) == (0, 0, 0)
    assert slots.compact().shape == (rows, 0)
    assert not slots.should_compact(0, 0)
    slots.finish(ints())
    slots.remove(ints())
    assert slots.rows == 0
    slots.check_integrity()


def test_what_was_read_stays_as_it_was(ragged):
    valid, lengths, finished = ragged.valid, ragged.lengths, ragged.finished
    before = [valid.copy(), lengths.copy(), finished.copy()]
    given = ints(1, 2)
    ragged.roll_back(given)
    given[:] = 7  # nor does the caller's array become ours
    assert ragged.lengths.tolist() == [1, 2]
    ragged.append(ints(1, 1))
    ragged.finish(ints(0))
    ragged.compact()
    ragged.remove(ints(1))
    for then, now in zip(before, [valid, lengths, finished], strict=True):
        np.testing.assert_array_equal(then, now)


REFUSED = {
    "nothing to append": (lambda s: s.append(ints(0, 0)), "all 0"),
    "no row to append to": (lambda s: Slots().append(ints()), "all 0"),
    "negative width": (lambda s: s.append(ints(1, -1)), "at least 0, not -1"),
    "a width too few": (lambda s: s.append(ints(1)), "each of 2 rows"),
    "fractional widths": (lambda s: s.append(np.array([1.0, 1.0])), "whole numbers"),
    "tokens for a finished row": (lambda s: (s.finish(ints(1)), s.append(ints(1, 1))), r"rows \[1\] are"),
    "rolled forward": (lambda s: s.roll_back(ints(1, 4)), "row 1 has 3 tokens, fewer than 4"),
    "negative length": (lambda s: s.roll_back(ints(-1, 3)), "at least 0"),
    "a length too many": (lambda s: s.roll_back(ints(1, 1, 1)), "each of 2 rows"),
    "finish beyond the end": (lambda s: s.finish(ints(2)), "indices from 0 to 1"),
    "finish from the end": (lambda s: s.finish(ints(-1)), "indices from 0 to 1"),
    "finish by a mask": (lambda s: s.finish(np.array([True, False])), "row indices"),
    "keep a row twice": (lambda s: s.remove(ints(0, 0)), "twice"),
    "keep beyond the end": (lambda s: s.remove(ints(5)), "indices from 0 to 1"),
    "join a negative number": (lambda s: s.join(-1), "at least 0"),
    "a negative number of rows": (lambda s: Slots(-1), "at least 0"),
    "negative slack": (lambda s: s.should_compact(-0.1, 0), "slack"),
    "slack that is no number": (lambda s: s.should_compact(float("nan"), 0), "slack"),
    "slack without end": (lambda s: s.should_compact(float("inf"), 0), "slack"),
    "negative floor": (lambda s: s.should_compact(0.5, -1), "floor"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refuses_and_stays_whole(ragged, case):
    call, says = REFUSED[case]
    with pytest.raises(ValueError, match=says):
        call(ragged)
    assert ragged.slots == 3
    ragged.check_integrity()


def test_integrity_names_what_is_wrong(ragged):
    ragged.lengths = ints(1, 2)
    with pytest.raises(AssertionError, match="row 1 has 3 valid slots, but length 2"):
        ragged.check_integrity()
    ragged.lengths = ints(1, 3)
    ragged.finished = np.array([False, True])
    with pytest.raises(AssertionError, match=r"finished rows hold tokens: \[1\]"):
        ragged.check_integrity()
    ragged.finished = np.array([False])
    with pytest.raises(AssertionError, match="2 rows of slots"):
        ragged.check_integrity()
