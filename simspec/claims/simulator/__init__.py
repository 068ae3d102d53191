"""Claims on this project's own simulator: its cache, its replay, and what its figures may be read as."""
