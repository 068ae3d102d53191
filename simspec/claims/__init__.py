"""Falsifiable statements about speculative decoding, each with the rule that decides it."""
