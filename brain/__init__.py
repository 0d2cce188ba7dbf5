"""The command line: a module per command group; imports everything, nothing imports it."""
