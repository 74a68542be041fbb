"""Symbols that plug-ins take from the program that opens them, by pattern: what `host-symbols` is when nobody says it.

They are the documented C interfaces of programs whose plug-ins are linked without a library that defines these names.
It judges nothing: undefined_symbol.py asks, and only where the program is not known.
"""

from __future__ import annotations

#: `*` is any text. Names that a program's own plug-ins share with ordinary libraries are not here.
KNOWN_HOST_SYMBOLS = (
    # ld.so itself, which the C library of every program needs (psABI, thread-local storage).
    "__tls_get_addr",
    "___tls_get_addr",
    # CPython ("Extending and Embedding": extension modules are not linked to libpython); PyPy's names are the same.
    "Py*",
    "_Py*",
    # Node.js: Node-API, and the C++ interfaces of V8 and Node that older add-ons use.
    "napi_*",
    "node_api_*",
    "node_module_register",
    "uv_*",
    "_ZN2v8*",
    "_ZNK2v8*",
    "_ZN4node*",
    # PHP: the Zend engine and its runtime.
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
    # The Java virtual machine's invocation interface.
    "JNI_CreateJavaVM",
    "JNI_GetCreatedJavaVMs",
    "JNI_GetDefaultJavaVMInitArgs",
    "JVM_*",
    # Lua, Ruby, Perl, Tcl (whose stub tables are the plug-in's own), R, Julia.
    "lua_*",
    "luaL_*",
    "rb_*",
    "ruby_*",
    "Perl_*",
    "PerlIO*",
    "PL_*",
    "perl_*",
    "Tcl_*",
    "Tk_*",
    "R_*",
    "Rf_*",
    "jl_*",
    "ijl_*",
    # Apache's server modules.
    "ap_*",
)
