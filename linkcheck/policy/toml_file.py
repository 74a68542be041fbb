"""One TOML file, read whole and decoded, with a way to blame a place in it. Knows no key of the policy schema."""

from __future__ import annotations

import os
import stat
import sys
from typing import TYPE_CHECKING, Any

from linkcheck.errors import PolicyError
from linkcheck.policy.plain_toml import read_plain_toml
from linkcheck.value import Value

if TYPE_CHECKING:
    from linkcheck.policy.lines import Address, LineMap

#: In bytes. Far above any policy written by hand, far below what would make reading it noticeable.
LARGEST_FILE = 1 << 20

#: Some editors put it in front of UTF-8.
_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


class TomlFile(Value):
    """A parsed TOML file. `path` is shown in messages; `data` is what tomllib made of `text`."""

    path: str
    text: str
    data: dict[str, Any]

    def map_lines(self) -> LineMap:
        """Where the values of this file stand. It scans the text, so it is made only when a place is to be named."""
        from linkcheck.policy.lines import LineMap

        return LineMap(self.text)

    def error(self, address: Address, reason: str) -> PolicyError:
        """A PolicyError that blames the value at `address`."""
        return PolicyError(self.path, self.map_lines().find(address), reason)


def read_toml(path: str, *, only_regular: bool = False) -> TomlFile:
    """Read and parse the TOML file at `path`.

    Raises PolicyError when it is missing, not a file, unreadable, larger than LARGEST_FILE, not UTF-8 or not TOML.
    `only_regular` refuses pipes and devices too, which may never end or never begin: a path that the user did not
    name on the command line must not make the run wait.
    """
    return parse_toml(path, read_bytes(path, only_regular=only_regular))


def read_profile(path: str) -> TomlFile:
    """Read a built-in profile: as read_toml, but without tomllib where the file keeps to the plain part of TOML.

    Only for files that come with linkcheck, which the tests compare with what tomllib makes of them.
    """
    content = read_bytes(path)
    plain = read_plain_toml(text := _decode(path, content))
    return parse_toml(path, content) if plain is None else TomlFile(path, text, plain)


def read_bytes(path: str, *, only_regular: bool = False) -> bytes:
    """The content of the file at `path`, at most LARGEST_FILE + 1 bytes of it. Raises PolicyError as read_toml."""
    try:
        if only_regular and not stat.S_ISREG(mode := os.stat(path).st_mode):
            raise PolicyError(path, None, "is a directory" if stat.S_ISDIR(mode) else "is not a regular file")
        # Opening a FIFO waits until somebody writes, so it is opened without; a shell's `<(command)` has its writer.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            os.set_blocking(file.fileno(), True)
            content = file.read(LARGEST_FILE + 1)
            if not content and stat.S_ISFIFO(os.fstat(file.fileno()).st_mode):
                raise PolicyError(path, None, "is a pipe that nobody writes a policy to")
            return content
    except IsADirectoryError:
        raise PolicyError(path, None, "is a directory, not a policy file") from None
    except FileNotFoundError:
        raise PolicyError(path, None, "no such file") from None
    except OSError as error:
        raise PolicyError(path, None, f"cannot be read: {error.strerror or error}") from None
    except ValueError:  # a NUL in the path: no file can be called so (man 7 path_resolution)
        raise PolicyError(path.replace("\0", "\\0"), None, "no file can have this name") from None


def parse_toml(path: str, content: bytes) -> TomlFile:
    """Decode and parse `content`, read from `path`. Raises PolicyError as read_toml."""
    if len(content) > LARGEST_FILE:
        raise PolicyError(path, None, f"is larger than {LARGEST_FILE >> 20} MiB, too large for a policy file")
    text = _decode(path, content)
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _syntax_error(path, str(error), text) from None
    except ValueError as error:  # an integer too long for int(), which the parser lets through
        raise PolicyError(path, None, f"is not valid TOML: {error}") from None
    except RecursionError:
        raise PolicyError(path, None, "is not usable TOML: its lists or tables are nested too deeply") from None
    return TomlFile(path, text, data)


def _decode(path: str, content: bytes) -> str:
    if content.startswith(_UTF16_MARKS):
        raise PolicyError(path, 1, "is encoded as UTF-16; TOML must be UTF-8")
    try:
        text = content.removeprefix(_UTF8_MARK).decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        reason = f"is not UTF-8: byte {content[error.start]:#04x} at offset {error.start}"
        raise PolicyError(path, line, reason) from None
    return text.replace("\r\n", "\n")


def _syntax_error(path: str, message: str, text: str) -> PolicyError:
    """The error for a TOMLDecodeError's `message`, the only place where Python before 3.14 has the line."""
    import re

    where = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)$", message)
    line = None
    if where is not None:
        line = int(where[1]) if where[1] else text.rstrip("\n").count("\n") + 1
        message = message[: where.start()]
    return PolicyError(path, line, f"is not valid TOML: {message[:1].lower()}{message[1:]}")
