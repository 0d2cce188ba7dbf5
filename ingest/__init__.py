"""Acquisition: seeds → works → papers → documents → text."""
