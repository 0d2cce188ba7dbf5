"""Acquisition: papers that are named or searched for become works, merged papers, and full texts to be fetched."""
