"""The rules, one a file. They read no file and print nothing."""
