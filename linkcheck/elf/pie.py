"""Tells what an ET_DYN file is: linkers use that type for libraries and for executables. It reads nothing."""

from __future__ import annotations

from linkcheck.model import DF_1_PIE, FileKind


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
