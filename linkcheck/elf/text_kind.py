"""What a text file is: a linker script, a Git LFS pointer, a flattened link, a page, or just text. No judgement."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from linkcheck.model import FileIdentity, FileKind
from linkcheck.text import unique

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkcheck.elf.contents import Contents

#: Bytes of a text that are looked at; a linker script that stands in for a library has a few hundred.
MOST_TEXT = 1 << 16
#: Control characters that text may hold: backspace, tab, line ends, form feed, escape.
TEXT_CONTROLS = frozenset(b"\b\t\n\r\f\x1b")
#: PATH_MAX of Linux (<linux/limits.h>): no link target is longer.
LONGEST_PATH = 4096

#: Commands of ld's manual, "Linker Scripts", and what must follow each.
SCRIPT_COMMANDS = {
    **dict.fromkeys(
        (
            "ASSERT",
            "ENTRY",
            "EXTERN",
            "GROUP",
            "INPUT",
            "LD_FEATURE",
            "NOCROSSREFS",
            "OUTPUT",
            "OUTPUT_ARCH",
            "OUTPUT_FORMAT",
            "PROVIDE",
            "PROVIDE_HIDDEN",
            "REGION_ALIAS",
            "SEARCH_DIR",
            "STARTUP",
            "TARGET",
        ),
        "(",
    ),
    **dict.fromkeys(("MEMORY", "PHDRS", "SECTIONS", "VERSION"), "{"),
}
SCRIPT_TOKEN = re.compile(r'/\*.*?(?:\*/|\Z)|"[^"\n]*"|[(){},;]|[^\s(){},;"]+|"', re.DOTALL)
LIBRARY_NAME = re.compile(r"[^/]+\.(?:so(?:\.[0-9A-Za-z_]+)*|a|o|dylib|dll|lib)\Z", re.DOTALL)
#: What a page begins with, white space and comments skipped (WHATWG HTML, "Writing HTML documents").
HTML_START = re.compile(r"<(?:!doctype\s+html|html|head|body|title|script|meta)\b", re.IGNORECASE)
LFS_VERSION = re.compile(r"version https://(?:git-lfs|hawser)\.github\.com/spec/v\d+\n")


def identify_text(contents: Contents) -> FileIdentity | None:
    """Recognise text and say which; None when the bytes are not text."""
    flattened = _identify_cygwin_link(contents)
    if flattened is not None:
        return flattened
    if not _is_text(contents.head):
        return None
    data = contents.read(0, min(contents.size, MOST_TEXT))
    if not _is_text(data):
        return None
    text = data.decode("utf-8", "surrogateescape")
    for step in (_identify_lfs_pointer, _identify_script, _identify_flattened_link, _identify_html):
        identity = step(contents, text)
        if identity is not None:
            return identity
    return FileIdentity(contents.path, FileKind.TEXT, _describe_text(text))


def _is_text(data: bytes) -> bool:
    return all(byte in TEXT_CONTROLS or (byte >= 0x20 and byte != 0x7F) for byte in set(data))


def linker_script_libraries(text: str) -> tuple[str, ...] | None:
    """The files in the INPUT and GROUP commands of a GNU ld script (AS_NEEDED included), or None for other text.

    Source: ld manual, "Commands Dealing with Files". A script is known by its first command, comments skipped.
    """
    tokens = [t.group() for t in SCRIPT_TOKEN.finditer(text) if not t.group().startswith("/*")]
    if not tokens:
        return None
    if tokens[0] == "INCLUDE" and len(tokens) > 1:
        return ()
    if SCRIPT_COMMANDS.get(tokens[0]) != "".join(tokens[1:2]):
        return None
    return unique(_input_files(tokens))


def _input_files(tokens: list[str]) -> Iterator[str]:
    depth = 0
    collecting = False
    previous = ""
    for token in tokens:
        if token == "(":  # noqa: S105 - a token of the linker's language
            if depth == 0:
                collecting = previous in ("INPUT", "GROUP")
            depth += 1
        elif token == ")":  # noqa: S105
            depth = max(0, depth - 1)
        elif collecting and depth and token not in (",", ";", "{", "}", "AS_NEEDED"):
            name = token.strip('"')
            if name:
                yield name
        previous = token


def _identify_script(contents: Contents, text: str) -> FileIdentity | None:
    names = linker_script_libraries(text)
    if names is None:
        return None
    detail = f"it names {', '.join(names)}" if names else "it names no library"
    return FileIdentity(contents.path, FileKind.LD_SCRIPT, detail, names=names)


def _identify_lfs_pointer(contents: Contents, text: str) -> FileIdentity | None:
    """See the Git LFS specification, "The Pointer": `version` first, then sorted keys."""
    if not LFS_VERSION.match(text) or "\noid " not in text:
        return None
    size = re.search(r"^size (\d+)$", text, re.MULTILINE)
    detail = f"the real file has {size.group(1)} bytes and is not here" if size else "the real file is not here"
    return FileIdentity(contents.path, FileKind.LFS_POINTER, detail)


def _identify_flattened_link(contents: Contents, text: str) -> FileIdentity | None:
    """A link that became a file, as git writes it with core.symlinks=false and as zip tools that know no links do."""
    target = text.removesuffix("\n").removesuffix("\r")
    if contents.size > LONGEST_PATH or not target or any(c.isspace() for c in target) or "://" in target:
        return None
    if not LIBRARY_NAME.match(target.rpartition("/")[2]):
        return None
    return FileIdentity(contents.path, FileKind.FLATTENED_SYMLINK, f"it only holds the path {target}", names=(target,))


def _identify_cygwin_link(contents: Contents) -> FileIdentity | None:
    """Cygwin's and MSYS's links (Cygwin User's Guide): the cookie `!<symlink>`, then the target, UTF-16 or plain."""
    cookie = b"!<symlink>"
    if not contents.head.startswith(cookie):
        return None
    body = contents.head[len(cookie) :]
    encoding = "utf-16" if body.startswith(b"\xff\xfe") else "utf-8"
    target = body.decode(encoding, "replace").rstrip("\0")
    return FileIdentity(contents.path, FileKind.FLATTENED_SYMLINK, f"Cygwin's link to {target}", names=(target,))


def _identify_html(contents: Contents, text: str) -> FileIdentity | None:
    start = text.removeprefix("\ufeff").lstrip()
    while start.startswith("<!--") and "-->" in start:
        start = start.partition("-->")[2].lstrip()
    if not HTML_START.match(start):
        return None
    lowered = start.lower()
    begin = lowered.find("<title>")
    end = lowered.find("</title>", begin)
    title = start[begin + len("<title>") : end].strip() if 0 <= begin < end else ""
    return FileIdentity(contents.path, FileKind.HTML, f"titled “{_shorten(title)}”" if title else "")


def _describe_text(text: str) -> str:
    first = text.lstrip("\ufeff").lstrip().partition("\n")[0].strip()
    if text.startswith("#!"):
        return f"a script, first line “{_shorten(first)}”"
    if "libtool library file" in text[:200]:
        return "a libtool library file (.la)"
    if text.startswith("--- !tapi-tbd"):
        return "an Apple text-based stub (.tbd)"
    if first.startswith("<?xml"):
        return "an XML document"
    return f"it begins with “{_shorten(first)}”" if first else "it holds only white space"


def _shorten(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:59] + "…"
