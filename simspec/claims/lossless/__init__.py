"""Claims on whose text comes out: which chains and length rules keep the target's own."""
