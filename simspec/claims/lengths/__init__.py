"""Claims on block lengths: which is best, and what published rules make of it."""
