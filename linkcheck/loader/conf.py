"""Directories of ld.so.conf, for a sysroot where ldconfig has not made a cache yet; ld.so itself never reads it.

Source: glibc elf/ldconfig.c (parse_conf, add_dir_1) and man 8 ldconfig.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.loader.files import Files

CONF = "/etc/ld.so.conf"
_CONF_LIMIT = 1 << 20
_MAX_FILES = 256


def read_directories(files: Files, path: str = CONF) -> tuple[str, ...]:
    """Directories that `path` and the files it includes name, in order, each once; () when it cannot be read."""
    return tuple(dict.fromkeys(_directories(files, path, set())))


def _directories(files: Files, path: str, seen: set[str]) -> Iterator[str]:
    if path in seen or len(seen) >= _MAX_FILES:
        return
    seen.add(path)
    try:
        text = files.read(path, _CONF_LIMIT).decode("utf-8", "surrogateescape")
    except OSError:
        return
    for line in text.split("\n"):
        entry = line.partition("#")[0].strip(" \t\r\v\f")
        words = entry.split()
        if not words or (words[0].lower() == "hwcap" and len(words) > 1):
            continue
        if words[0] != "include" or len(words) == 1:
            directory = entry.rstrip("/")
            if directory:
                yield directory
            continue
        for word in words[1:]:
            pattern = word if word.startswith("/") else f"{path.rpartition('/')[0]}/{word}"
            for included in files.matching(pattern):
                yield from _directories(files, included, seen)
