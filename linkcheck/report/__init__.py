"""The report of a run, and one renderer a format. Knows no rule's inside and reads no file."""
