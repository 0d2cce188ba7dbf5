"""Text → 768-d embedding; the only package that imports torch, and lazily."""
