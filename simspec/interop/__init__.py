"""Files that others made, read strictly: units stated, nothing guessed in silence, nothing lost uncounted."""
