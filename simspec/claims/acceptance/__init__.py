"""Claims on acceptance: what similarity says of it, and the tokens that follow from it."""
