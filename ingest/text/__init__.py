"""What a file says: its text in reading order, its structure, or an honest verdict."""
