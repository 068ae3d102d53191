"""Claims on choosing anew each cycle: what it can gain, and what bounds it."""
