"""linkcheck proves, from the files alone, how native (ELF) programs were built and linked."""

__version__ = "0.1.0.dev0"
