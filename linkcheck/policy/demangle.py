"""C++ names out of mangled ones, by the C++ runtime of this machine. Knows no symbol table and caches nothing.

The runtime's own `__cxa_demangle` (Itanium C++ ABI, chapter 3.4 "Demangler API") is asked through ctypes: measured on
x86-64, importing ctypes and loading libstdc++ takes 6 ms; LIEF, which calls the same function, 400 ms to import.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from linkcheck.errors import UndemangledNameError

if TYPE_CHECKING:
    from collections.abc import Callable

#: Where `__cxa_demangle` lives: GNU's runtime, LLVM's, or the process itself (as on macOS).
_RUNTIMES = ("libstdc++.so.6", "libc++abi.so.1", None)

#: A demangled name can be exponentially longer than the mangled one, because a substitution (S1_, T0_) may stand for
#: text that holds substitutions: 245 characters were seen to become 54 MB. With at most 36 of them a name grows to a
#: few megabytes at worst; the longest names of real programs that a policy would name have about a dozen.
_MOST_SUBSTITUTIONS = 36
_LONGEST_NAME = 4096
_SUBSTITUTION = re.compile(r"[ST][0-9A-Z]*_")


def make_demangler() -> Callable[[str], str | None]:
    """A function from a mangled name to its C++ name, or to None for a name that is not a mangled C++ name.

    Raises UndemangledNameError when no C++ runtime is found. The function raises it for a name that would take too
    long to demangle, so that a hostile file cannot hold up a check.
    """
    import ctypes

    for runtime in _RUNTIMES:
        try:
            demangle = ctypes.CDLL(runtime).__cxa_demangle
            break
        except (OSError, AttributeError):
            continue
    else:
        raise UndemangledNameError(
            "no C++ runtime (libstdc++.so.6) to read C++ names with; write the policy's symbols as mangled names"
        )
    demangle.restype = ctypes.c_void_p
    demangle.argtypes = (ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int))
    free = ctypes.CDLL(None).free
    free.restype = None
    free.argtypes = (ctypes.c_void_p,)

    def demangled(name: str) -> str | None:
        if not name.startswith("_Z"):
            return None  # the runtime would take "i" for the type int
        if len(name) > _LONGEST_NAME or len(_SUBSTITUTION.findall(name)) > _MOST_SUBSTITUTIONS:
            raise UndemangledNameError(
                f"the symbol name {name[:60]}… is too complicated to be demangled; "
                "write the policy's symbol as a mangled name"
            )
        status = ctypes.c_int()
        pointer = demangle(name.encode("utf-8", "surrogateescape"), None, None, ctypes.byref(status))
        if not pointer:
            return None
        try:
            return ctypes.string_at(pointer).decode("utf-8", "surrogateescape")
        finally:
            free(pointer)

    return demangled
