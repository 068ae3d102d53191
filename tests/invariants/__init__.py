"""What must be true of every run of the serving simulator, by subject; tests/invariants_serving.py lists all."""
