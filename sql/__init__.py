"""SQL as package data: migrations (run once), functions (re-runnable), queries (named)."""
