"""Kendall's tau of many orders at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_BLOCK = 18


def kendall_taus(predicted: Floats, truth: Floats) -> Floats:
    """Tau-b of each row, shape (rows,); NaN where a row of either is all ties or there is nothing to order.

    Args:
        predicted, truth: shape (rows, K).
    """
    rows, size = truth.shape
    if size < 2:
        return np.full(rows, np.nan)
    # In the order of truth, and of predicted among equals, a pair is discordant just if predicted falls.
    order = np.argsort(truth, axis=1)
    if (np.diff(np.take_along_axis(truth, order, 1)) == 0).any():
        order = np.lexsort((predicted, truth), axis=1)
    ours, theirs = np.take_along_axis(predicted, order, 1), np.take_along_axis(truth, order, 1)
    by_ours = np.argsort(ours, axis=1, kind="stable")
    ranked = np.take_along_axis(ours, by_ours, 1)
    same_truth = theirs[:, 1:] == theirs[:, :-1]
    same_both = same_truth & (ours[:, 1:] == ours[:, :-1])
    pairs = size * (size - 1) // 2
    tied, alike = _ties(ranked[:, 1:] == ranked[:, :-1]), _ties(same_truth)
    concordant_less = pairs - tied - alike + _ties(same_both) - 2 * falls(by_ours)
    with np.errstate(invalid="ignore"):
        return np.asarray(concordant_less / np.sqrt((pairs - tied) * (pairs - alike).astype(np.float64)))


def _ties(same: NDArray[np.bool_]) -> Ints:
    """Pairs of equals in each row, from whether each is equal to the one before it; (rows, K - 1)."""
    if not same.any():
        return np.zeros(len(same), dtype=np.int64)
    place = np.arange(1, same.shape[1] + 1)
    begun = np.maximum.accumulate(np.where(same, 0, place), axis=1)
    return np.asarray((place - begun).sum(axis=1), dtype=np.int64)


def falls(orders: Ints) -> Ints:
    """Inversions of each permutation, shape (rows,): pairs i < j with orders[i] > orders[j].

    K is below 2^15. Places and values are cut into blocks. Pairs in one block of places are compared one by
    one, so are pairs in one block of values, and all others follow from how many are in each pair of blocks.
    """
    rows, size = orders.shape
    blocks = -(-size // _BLOCK)
    place = np.broadcast_to(np.arange(blocks * _BLOCK, dtype=np.int16), (rows, blocks * _BLOCK))
    padded = place.copy()  # what is added at the end falls nowhere
    padded[:, :size] = orders
    place_block = np.empty_like(padded)
    np.put_along_axis(place_block, padded.astype(np.int64), place // _BLOCK, axis=1)
    by_place = padded.reshape(rows, blocks, _BLOCK)
    place_block = place_block.reshape(rows, blocks, _BLOCK)
    found = np.zeros(rows, dtype=np.int64)
    for ahead in range(1, _BLOCK):
        found += np.count_nonzero(by_place[:, :, :-ahead] > by_place[:, :, ahead:], axis=(1, 2))
        found += np.count_nonzero(place_block[:, :, :-ahead] > place_block[:, :, ahead:], axis=(1, 2))
    cell = (np.arange(rows)[:, None] * blocks + place // _BLOCK) * blocks
    count = np.bincount((cell + padded // _BLOCK).ravel(), minlength=rows * blocks * blocks)
    count = count.reshape(rows, blocks, blocks)
    below = np.cumsum(count, axis=2) - count
    after = np.cumsum(below[:, ::-1], axis=1)[:, ::-1] - below
    return np.asarray(found + (count * after).sum(axis=(1, 2)), dtype=np.int64)
