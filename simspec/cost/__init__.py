"""How long a step takes on a device."""
