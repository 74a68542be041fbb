"""What the commands of a checkout need beside the package: environment, gate, documentation."""
