"""The word index: BM25 over passages, on this machine's disk, in step with the database."""
