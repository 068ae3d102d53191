"""Real decoding held against what was simulated or claimed: the only room that knows both sides."""
