"""Load sweeps: every load x policy on the same luck, and the load at which speculation stops paying.

Read :mod:`simspec.sweep.grid` first.
"""
