"""Speculative decoding under load: requests arrive, queue, are batched, and meet a memory that is finite.

Read :mod:`simspec.serving.engine` first. The only room that knows SimPy.
"""
