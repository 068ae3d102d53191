"""How each study of :mod:`simspec.compare.specrouter` is shown: sentences, figures and tables."""
