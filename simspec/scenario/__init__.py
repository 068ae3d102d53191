"""A serving scenario: one TOML file, one frozen tree, one or several simulations, figures of merit.

Read :mod:`simspec.scenario.config` first: what may stand in a file.
"""
