"""Tells what an ET_DYN file is, and by which sign: linkers use that type for libraries and for executables.

It reads nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.model import DF_1_PIE, FileKind

if TYPE_CHECKING:
    from linkcheck.model import Image


def judge_et_dyn(*, flags_1: int, has_interpreter: bool, has_soname: bool) -> FileKind:
    """SHARED_OBJECT, PIE or STATIC_PIE, from DT_FLAGS_1, PT_INTERP and DT_SONAME of an ET_DYN file.

    DF_1_PIE decides where the linker set it (binutils since 2.26, lld since 9). Without it PT_INTERP tells an
    executable, unless there is a DT_SONAME: libc.so.6 has both, because it can be run to print its version.
    """
    if flags_1 & DF_1_PIE:
        return FileKind.PIE if has_interpreter else FileKind.STATIC_PIE
    if has_interpreter and not has_soname:
        return FileKind.PIE
    return FileKind.SHARED_OBJECT


def explain_kind(image: Image) -> str:
    """By which sign `image` is a program, and for which machine; "" for a shared object, which is what is expected."""
    if image.kind is FileKind.SHARED_OBJECT:
        return ""
    if image.kind is FileKind.EXECUTABLE:
        # Without an interpreter nobody would load what PT_DYNAMIC asks for.
        sign = "statically linked" if image.interpreter is None else "dynamically linked"
    else:
        sign = "DF_1_PIE is set" if image.flags_1 & DF_1_PIE else "PT_INTERP without DT_SONAME"
    return f"{sign}, {image.target.machine_name}"
