"""Searching for long: `make nightly`."""
