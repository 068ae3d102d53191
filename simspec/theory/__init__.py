"""Closed forms, numpy only; each says its paper, equation and assumptions."""
