"""Lists → fusion → answer, over HTTP."""
