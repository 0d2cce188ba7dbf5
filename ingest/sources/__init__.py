"""The open scholarly sources, one module each behind one Protocol."""
