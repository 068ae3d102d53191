"""SpecRouter's Eq. 7 as a family (arXiv 2505.07680).

T_eff = (expected seconds of a cycle) / (expected target tokens of a cycle). The paper gives
no expansion in any text that could be reached, so every reading here has a name, and
none is "the" Eq. 7.

For a chain M_1 .. M_N (N = target): gamma = tokens drafted by M_1, alpha_i = acceptance of
M_i's tokens by M_{i+1}, T_1 = M_1's seconds a token, V_i(n) = seconds of a forward of M_i
over n tokens. All acceptances are taken as independent and identical along the block.
Arrays broadcast, so that one call prices many draws.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from simspec.theory.acceptance import emitted_tokens, surviving_tokens

Floats = NDArray[np.float64]
Forward = Callable[[int, Floats], Floats]
Reach = Literal["any", "all", "always"]


def reach(
    alphas: Sequence[Floats],
    gamma: int,
    draft_seconds: Floats,
    verify: Forward,
    reached: Reach = "any",
    *,
    wide: bool = False,
) -> Floats:
    """The reading nearest to the published phrase ("probabilities of reaching each level").

    T_eff = [gamma T_1 + sum_{i>=2} R_i T_i] / E(prod alpha, gamma), with R_2 = R_N = 1 and, for
    2 < i < N, R_i = prod_{j<=i-2} alpha_j ("any": at least one survives), the same to the power
    gamma ("all"), or 1 ("always"); up to three levels these are one and the same. T_i is the
    model's single-token time, as printed; ``wide`` puts a forward over gamma + 1 tokens there.

    Args:
        alphas: alpha_1 .. alpha_{N-1}, adjacent acceptance.
        gamma: tokens drafted by M_1.
        draft_seconds: T_1.
        verify: V_i(n) given (i, n); i = 2 .. N, n float.
    """
    levels = len(alphas) + 1
    width = np.asarray(gamma + 1.0 if wide else 1.0)
    total = gamma * np.asarray(draft_seconds, dtype=np.float64)
    product = np.ones_like(np.asarray(alphas[0], dtype=np.float64))
    for i in range(2, levels + 1):
        weight: Floats = np.ones_like(product)
        if 2 < i < levels and reached != "always":
            weight = np.prod(np.stack([np.asarray(a) for a in alphas[: i - 2]]), axis=0)
            if reached == "all":
                weight = weight**gamma
        total = total + weight * verify(i, width)
    for a in alphas:
        product = product * a
    return np.asarray(total / emitted_tokens(product, gamma))


def funnel(
    alphas: Sequence[Floats], gamma: int, draft_seconds: Floats, verify: Forward, *, replace: bool = False
) -> Floats:
    """Follow the block up the funnel: n_1 = gamma, n_{i+1} = S(alpha_i, n_i), or E where the
    verifier appends its own token.

    T_eff = [gamma T_1 + sum_{i>=2} V_i(n_{i-1} + 1)] / (1 + S(alpha_{N-1}, n_{N-1})). Takes the
    acceptance of what survives to be the plain pairwise rate, which is where it errs when
    levels are correlated. Arguments as for :func:`reach`.
    """
    levels = len(alphas) + 1
    total = gamma * np.asarray(draft_seconds, dtype=np.float64)
    n = np.full_like(np.asarray(alphas[0], dtype=np.float64), gamma)
    for i in range(2, levels + 1):
        total = total + verify(i, n + 1.0)
        if i < levels:
            n = emitted_tokens(alphas[i - 2], n) if replace else surviving_tokens(alphas[i - 2], n)
    return np.asarray(total / (1.0 + surviving_tokens(alphas[-1], n)))
