"""Pure functions on tensors, each with its equation."""
