"""Drafters made on the spot: a target's texts, networks trained on them, folders a recording can name."""
