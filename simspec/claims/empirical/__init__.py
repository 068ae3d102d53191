"""Claims about the world, decided on a recorded trace: what the theory supposes of acceptance and cost."""
