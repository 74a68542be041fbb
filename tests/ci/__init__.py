"""What ci/ does, judged by the commands that it runs."""
