"""Replay: what a schedule would have done on recorded behaviour, and how long it would take.

First behaviour, then time. Under greedy decoding a request's cycles do not depend on
which batch it is in, so :mod:`simspec.replay.trajectories` works out each request's
cycles once, exactly, and :mod:`simspec.replay.lockstep` prices any batching of them.
"""
