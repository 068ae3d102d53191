"""Schedules that have looked: what could have been done on the same record."""
