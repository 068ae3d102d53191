"""Studies of SpecRouter's questions (arXiv 2505.07680), one module each, giving plain data."""
