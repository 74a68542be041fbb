"""One file a command: options, printing, exit status; nothing else."""
