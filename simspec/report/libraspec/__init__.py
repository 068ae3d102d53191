"""How each study of :mod:`simspec.compare.libraspec` is shown: sentences, figures and tables."""
