"""Time forwards of real models."""
