"""Studies of LibraSpec's questions (arXiv 2608.08721), one module each, giving plain data."""
