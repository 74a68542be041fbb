"""Which file of a process, or among the inputs, defines what nobody exports, and how to let it export. No verdict."""

from __future__ import annotations

from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING

from linkcheck.errors import MalformedElfError, UnreadableFileError
from linkcheck.model import FoundBy
from linkcheck.value import Value

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from linkcheck.model import Image, LoadSet

#: Their .symtab is not asked: a plug-in that is built for them uses what they export.
_SYSTEM = frozenset({FoundBy.CACHE, FoundBy.DEFAULT, FoundBy.INTERPRETER})

#: Each program that is not stripped names one of them in .symtab; one that exports them was linked with -rdynamic.
_IN_EVERY_PROGRAM = ("_start", "main")


#: Programs among the inputs that are asked for the sake of one message; a directory may hold thousands.
_MOST_ASKED = 32


class Unexported(Value):
    """`image` defines `names` for itself alone, as its .symtab tells."""

    image: Image
    names: tuple[str, ...]


def find_unexported(load_set: LoadSet, index: int, names: Collection[str]) -> Unexported | None:
    """The first file, the program before others, that has in .symtab only some of `names`, imports of module `index`.

    None when there is none, or when the files that have them are stripped. A broken .symtab counts as none: it is extra
    evidence, and must not cost the finding.
    """
    for image in _candidates(load_set, index):
        with suppress(MalformedElfError, UnreadableFileError):
            if found := image.symbols.private(names):
                return Unexported(image, tuple(name for name in names if name in found))
    return None


def _candidates(load_set: LoadSet, index: int) -> Iterator[Image]:
    """The program (modules[0]) and what it loads, then the programs among the inputs."""
    for other, module in enumerate(load_set.modules):
        if other != index and module.found_by not in _SYSTEM:
            yield module.image
    if not load_set.root.is_executable:
        yield from islice((image for image in load_set.beside if image.is_executable), _MOST_ASKED)


def is_stripped(program: Image) -> bool:
    """Whether nothing is seen of what `program` defines and does not export."""
    symbols = program.symbols
    try:
        return not symbols.private(_IN_EVERY_PROGRAM) and not any(symbols.exported(name) for name in _IN_EVERY_PROGRAM)
    except (MalformedElfError, UnreadableFileError):
        return True


def export_remedy(image: Image, symbol: str) -> str:
    """How `image` comes to export `symbol` (ld(1): --export-dynamic, --export-dynamic-symbol)."""
    if not image.is_executable:
        return (
            f"Let {image.path} export it, with default visibility: look for `static`, -fvisibility=hidden, "
            "--exclude-libs and version scripts."
        )
    return "\n".join((f"Let the program {image.path} export it:", *export_lines(symbol)))


def export_lines(symbol: str) -> tuple[str, ...]:
    """The ways to let a program export `symbol`, a line each."""
    return (
        f"    c++ <objects> -rdynamic -o <program>    # or -Wl,--export-dynamic-symbol={symbol}",
        "    set_target_properties(<program> PROPERTIES ENABLE_EXPORTS ON)",
        "Neither exports what is `static` or has hidden visibility (-fvisibility=hidden).",
    )
