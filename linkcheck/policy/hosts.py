"""Symbols that plug-ins take from the program that opens them, by host: what `host-symbols` is when nobody says it.

They are the documented C interfaces of programs whose plug-ins are linked without a library that defines these names.
Many a host's interface is an ordinary library as well (libuv, liblua, libruby), and a file that forgot to link it is
no plug-in: it lacks the function that the host looks up. It judges nothing: undefined_symbol.py asks, and only where
the program is not known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.policy.patterns import matches, matches_any
from linkcheck.value import Value

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from linkcheck.model import SymbolTable


class Host(Value):
    """A program with plug-ins; all three are patterns of symbols, `*` is any text."""

    #: What it defines for its plug-ins.
    symbols: tuple[str, ...]
    #: What a plug-in defines for it, one of them; empty: no ordinary library defines `symbols`.
    entries: tuple[str, ...] = ()
    #: Of `symbols`, what a plug-in without an entry calls from a constructor to make itself known.
    registrations: tuple[str, ...] = ()


KNOWN_HOSTS = (
    # ld.so itself, which the C library of every program needs (psABI, thread-local storage).
    Host(("__tls_get_addr", "___tls_get_addr")),
    # CPython ("Extending and Embedding": extension modules are not linked to libpython); PyPy's names are the same.
    Host(("Py*", "_Py*")),
    # Node.js: Node-API, and the C++ interfaces of V8 and Node and libuv, which older add-ons use.
    Host(
        ("napi_*", "node_api_*", "node_module_register", "uv_*", "_ZN2v8*", "_ZNK2v8*", "_ZN4node*"),
        ("napi_register_module_v*", "node_register_module_v*", "_register_*"),
        ("napi_module_register", "node_module_register"),
    ),
    # PHP: the Zend engine and its runtime; a Zend extension has no get_module.
    Host(
        (
            "zend_*",
            "_zend_*",
            "php_*",
            "_php_*",
            "executor_globals*",
            "compiler_globals*",
            "core_globals*",
            "sapi_*",
            "_emalloc*",
            "_efree*",
            "_ecalloc*",
            "_erealloc*",
            "_estrdup*",
            "_estrndup*",
        ),
        ("get_module", "zend_extension_entry"),
    ),
    # The Java virtual machine's invocation interface; agents have Agent_OnLoad (JVM TI).
    Host(
        ("JNI_CreateJavaVM", "JNI_GetCreatedJavaVMs", "JNI_GetDefaultJavaVMInitArgs", "JVM_*"),
        ("JNI_OnLoad*", "Java_*", "Agent_OnLoad*"),
    ),
    Host(("lua_*", "luaL_*"), ("luaopen_*",)),
    Host(("rb_*", "ruby_*"), ("Init_*",)),
    # Perl: the function that XSLoader calls.
    Host(("Perl_*", "PerlIO*", "PL_*", "perl_*"), ("boot_*",)),
    # Tcl and Tk, of extensions without stubs: with them the tables are the plug-in's own.
    Host(("Tcl_*", "Tk_*"), ("*_Init", "*_SafeInit")),
    Host(("R_*", "Rf_*"), ("R_init_*",)),
    # Julia: a package image.
    Host(("jl_*", "ijl_*"), ("jl_image_*", "jl_system_image_*", "jl_sysimg_*")),
    # Apache: the `module` structure, which LoadModule names.
    Host(("ap_*",), ("*_module",)),
)


def find_host_symbols(names: Collection[str], files: Iterable[SymbolTable]) -> frozenset[str]:
    """Those of `names`, which nobody defines, that a well-known host does, if one of `files` is a plug-in of it.

    The definitions of `files` are gone through only when some host that asks for an entry has one of `names`. Raises
    MalformedElfError when a table cannot be read.
    """
    found: set[str] = set()
    doubtful: list[tuple[Host, set[str]]] = []
    for host in KNOWN_HOSTS:
        # No two hosts define one name, and those that need no entry have most of them: CPython.
        own = {name for name in names if name not in found and matches_any(name, host.symbols)}
        if not host.entries or any(matches_any(name, host.registrations) for name in own):
            found |= own
        elif own:
            doubtful.append((host, own))
    for table in files if doubtful else ():
        for symbol in table.exports():
            for host, own in doubtful:
                # Not matches_any: it would remember each of a library's hundred thousand names.
                if any(matches(symbol.name, entry) for entry in host.entries):
                    found |= own
    return frozenset(found)
