"""Schedules held against each other and against oracles, with regret and intervals."""
