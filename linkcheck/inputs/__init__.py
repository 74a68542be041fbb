"""What the user named becomes roots."""
