"""Profiles and the user's policy, read from TOML into frozen settings. Knows no ELF file and no loader."""
