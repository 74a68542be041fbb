"""What ld.so would do with images, from the files alone; nothing is ever executed. Knows no policy."""
