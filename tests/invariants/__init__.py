"""What must be true of every run of the serving simulator; tests/invariants_serving.py lists all of it."""
