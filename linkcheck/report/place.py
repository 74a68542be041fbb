"""Where a reported file is, as seen from a directory: relative paths and URIs. Text only; no file is looked at."""

from __future__ import annotations

import posixpath
import re

#: Surrogates that do not stand for a byte (PEP 383 uses U+DC80 to U+DCFF only).
_NO_BYTE = re.compile("[\ud800-\udc7f\udd00-\udfff]")


def path_below(path: str, directory: str) -> str | None:
    """`path` relative to the absolute `directory`, or None when it is not in it. `..` is resolved as text."""
    whole, top = _absolute(path, directory), _absolute("", directory)
    if whole == top:
        return "."
    prefix = top if top == "/" else f"{top}/"
    return whole[len(prefix) :] if whole.startswith(prefix) else None


def make_uri(path: str, directory: str) -> str:
    """A percent-encoded URI reference (RFC 3986): relative when `path` is below `directory`, else a file URI."""
    from urllib.parse import quote_from_bytes

    below = path_below(path, directory)
    if below is not None:
        # A colon is percent-encoded too: in the first part of a relative reference it would end a scheme.
        return quote_from_bytes(_encode(below))
    return f"file://{quote_from_bytes(_encode(_absolute(path, directory)))}"


def _absolute(path: str, directory: str) -> str:
    # POSIX lets normpath keep a leading double slash, which would read as a URI's host.
    return re.sub("^/+", "/", posixpath.normpath(posixpath.join(directory, path)))


def _encode(path: str) -> bytes:
    return _NO_BYTE.sub("\ufffd", path).encode("utf-8", "surrogateescape")
