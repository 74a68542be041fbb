"""Which libraries are Python extension modules: a Python interpreter opens them, so no DT_NEEDED names them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.errors import LinkcheckError

if TYPE_CHECKING:
    from linkcheck.model import Image


def is_extension_module(image: Image) -> bool:
    """Whether `image` exports the function that an import of a module of its file name would call.

    `PyInit_<name>` for `<name>.so` and `<name>.<tag>.so` (PEP 489, which also has the other spelling for names that
    are not ASCII). A symbol table that cannot be read makes no extension module; the rules say that it is broken.
    """
    name = image.path.rpartition("/")[2].partition(".")[0]
    if name.isascii():
        entry = f"PyInit_{name}"
    else:
        entry = f"PyInitU_{name.encode('punycode', 'replace').decode('ascii', 'replace').replace('-', '_')}"
    try:
        return bool(image.symbols.exported(entry))
    except LinkcheckError:
        return False
