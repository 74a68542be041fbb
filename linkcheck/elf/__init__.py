"""A file becomes facts. Knows no loader and no rule."""
