"""Claims on the serving engine: what its tables must add up to, whatever it serves."""
