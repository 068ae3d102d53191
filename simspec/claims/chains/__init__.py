"""Claims on chains of models: when a further level pays."""
