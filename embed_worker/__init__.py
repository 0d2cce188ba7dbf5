"""A farm node: claim → cut → encode → complete."""
