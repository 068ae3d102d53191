"""What is drafted and what is accepted: the rules of a cycle, free of torch."""
