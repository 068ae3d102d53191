"""Does Eq. 7 rank chains as exact expected time does? By reading and rules of a cycle (S7, S7b, S22 to S24).

The readings of SpecRouter's (2505.07680) Eq. 7 and their relatives are in :mod:`simspec.theory.chains`.
The truth is expected seconds over expected tokens of a cycle, by running the cycle's rules on every
outcome (:func:`simspec.strategies.outcomes.expected`). Symbols: M1 drafts gamma tokens, the last model is
the target; alpha_i = how often M_i and M_{i+1} say the same.

What "independent i.i.d. acceptance" is taken to mean, here and in the statements: at every place of the
text, whether M_{i+1} says what M_i says has probability alpha_i, independent of every other place and of
whether any other two neighbours agree there. For three models that fixes the joint law of the two
verdicts as the cycle sees them:

- funnel-truncate: the target judges only tokens that M2 let through, and accepts each with
  P(target = M2 | M2 = M1) = alpha_2, so a draft comes through both with probability alpha_1 alpha_2;
- funnel-replace and nested: the target judges M2's own text, its token at the cut included, so
  P(target = M2 | M2 != M1) = alpha_2 is supposed as well.

By rejection sampling the two verdicts on a token are in general not independent (what survives M2 is no
longer a draw from M1, claim S5b); these claims are about verdicts that are, and S7b about ones that are not.

How often M1 and the target agree where both differ from M2 is left open: only the pair M1 > target,
which has its own exact rate, depends on it.
"""
