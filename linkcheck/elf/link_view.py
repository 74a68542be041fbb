"""What a linker makes of a library that ld.so would load: only linkers need the section headers. It reads no symbol."""

from __future__ import annotations

from linkcheck.elf.bounded_file import BoundedFile
from linkcheck.elf.header import read_header
from linkcheck.elf.section_table import read_table
from linkcheck.errors import MalformedElfError
from linkcheck.value import Value


class LinkView(Value):
    """The one thing that linkers have against a library, as a clause; both are "" when there is none."""

    #: Every linker refuses the file.
    fault: str = ""
    #: Some linkers cannot use it.
    caution: str = ""


def read_link_view(path: str) -> LinkView:
    """How linkers see the shared object at `path`.

    Raises UnreadableFileError when it cannot be read any more, NotAnImageError when something else stands there now.
    """
    with BoundedFile(path) as file:
        try:
            sections = read_table(file, read_header(file))
        except MalformedElfError as error:
            return LinkView(fault=error.reason)
    if not sections:
        return LinkView(caution="without section headers: it loads, but GNU ld 2.40 and gold find no symbol in it")
    return LinkView()
