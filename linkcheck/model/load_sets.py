"""What one process would load, and what its symbols bind to; loader/ says how that comes about, not this file.

Source of the words: man 8 ld.so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.choice import Choice
from linkcheck.value import Value

if TYPE_CHECKING:
    from linkcheck.model.images import Image


class FoundBy(Choice):
    """Which step of ld.so's search found a file (man 8 ld.so, "DESCRIPTION"); values are part of the JSON."""

    ROOT = "root"
    DLOPEN = "dlopen"
    PRELOAD = "preload"
    PATH = "path"  # a NEEDED with a slash in it
    RPATH = "rpath"
    LIBRARY_PATH = "library-path"
    RUNPATH = "runpath"
    CACHE = "cache"
    DEFAULT = "default"
    INTERPRETER = "interpreter"  # ld.so itself, which is mapped before anything asks for it
    MAPPED = "mapped"  # no search would find it any more, but a running process has it mapped


class Module(Value):
    """One image of a load set: who asked for it first, by what name, and which search step found it."""

    image: Image
    #: Index into LoadSet.modules of the first one that asked for it; None for the root and for dlopen roots.
    needed_by: int | None
    requested_as: str
    found_by: FoundBy
    #: "global", or "local" for what was loaded only for a dlopen root opened with RTLD_LOCAL.
    scope: str = "global"
    #: Index of the root this module was loaded for (0, or the index of a dlopen root's module).
    loaded_for: int = 0
    #: Indices of the modules that satisfy each entry of image.needed, in order; None where unresolved.
    dependencies: tuple[int | None, ...] = ()
    #: Indices of the modules that satisfy each entry of image.dlopen_notes, in order; None where none does.
    noted: tuple[int | None, ...] = ()
    #: Paths in existing directories that ld.so would try before it came to this file, in order.
    tried: tuple[Attempt, ...] = ()


class Attempt(Value):
    """One path ld.so would try for a NEEDED, and why it did not take it."""

    path: str
    found_by: FoundBy
    #: "absent", or why a file that is there is passed over: "wrong machine: aarch64, …", "not ELF: a static archive".
    reason: str


class Unresolved(Value):
    """A NEEDED (or a dlopen name) for which ld.so would find no file it can load."""

    module: int
    needed: str
    #: Directories searched, in order, each once; empty for a NEEDED with a slash.
    directories: tuple[str, ...]
    #: Files that bear the name but could not be used, and why.
    rejected: tuple[Attempt, ...] = ()
    #: Files of that very name near the load set that the search has not met (LC203).
    elsewhere: tuple[str, ...] = ()
    #: Files that look like another version of it, such as libnvinfer.so or libnvinfer.so.10 for libnvinfer.so.11.
    similar: tuple[str, ...] = ()
    #: Why the search ended before it had looked everywhere, or "": then nothing says that the file is missing.
    given_up: str = ""
    #: The path of ld.so.cache and why nothing can be looked up in it, or "": ld.so passes over such a cache.
    cache_fault: str = ""
    #: Who asks when no DT_NEEDED does: FoundBy.PRELOAD or FoundBy.DLOPEN.
    special: FoundBy | None = None
    #: How many modules had been loaded when it was asked for.
    loaded: int = 0
    #: A file to preload or dlopen that its path names: it was looked at before, and what is wrong with it is LC101's.
    examined: bool = False


class Libc(Choice):
    """Whose dynamic loader a process starts with; values are those of --libc."""

    GLIBC = "glibc"
    MUSL = "musl"


class Opened(Value):
    """One dlopen, in the order the process makes them; `module` may have been loaded before."""

    module: int
    #: RTLD_GLOBAL: the module and all it needs join the global scope. Otherwise RTLD_LOCAL.
    global_: bool = False
    #: RTLD_DEEPBIND: what it loads looks into its own scope before the global one.
    deepbind: bool = False
    #: The module that calls dlopen.
    by: int = 0
    #: Only the caller's dlopen metadata says so; neither the user nor the policy does.
    noted: bool = False


class LoadSet(Value):
    """Every image one process would load, in load order; modules[0] is the root. Nothing was executed."""

    modules: tuple[Module, ...]
    unresolved: tuple[Unresolved, ...] = ()
    opened: tuple[Opened, ...] = ()
    #: The user named the root itself; False for a file that was found in a named directory.
    named: bool = True
    #: Every image among the inputs of the run, the root too, whether it is loaded here or not.
    beside: tuple[Image, ...] = ()
    #: Whose loader's rules it was made by, and binds by.
    libc: Libc = Libc.GLIBC
    #: Read from a process that runs: `opened` is all that it has open, whatever that is for, and nobody has seen which
    #: of it is RTLD_GLOBAL (`Opened.global_` says False).
    observed: bool = False
    #: The root's PT_INTERP, when the kernel cannot start it: then nothing of all this comes about.
    interpreter: Unresolved | None = None

    @property
    def root(self) -> Image:
        """The image the process starts from."""
        return self.modules[0].image

    def chain(self, index: int) -> tuple[int, ...]:
        """Indices from the root (or dlopen root) down to `index`, each needed by the one before."""
        links = [index]
        while (parent := self.modules[links[-1]].needed_by) is not None:
            links.append(parent)
        return tuple(reversed(links))


class BindingKind(Choice):
    """How a module is concerned with a symbol; values are part of the JSON."""

    IMPORT = "import"
    #: It has a definition others can bind to; its own uses may still end up elsewhere.
    DEFINITION = "definition"
    #: It has a definition that only itself can use.
    HIDDEN = "hidden"


class Binding(Value):
    """Where the uses of `symbol` inside one module end up; `module` and `provider` are indices of LoadSet.modules."""

    module: int
    symbol: str
    version: str | None
    kind: BindingKind
    #: None: nobody in the load set defines it.
    provider: int | None
    #: The import is weak (STB_WEAK), so it may stay without a provider: its address is then 0.
    weak: bool = False
    #: The provider is an executable that holds the object as a copy of this module's (R_*_COPY); None otherwise.
    copy_of: int | None = None
    #: The import names a version of the very library it gets, which has no versions: glibc before 2.41 ends the process
    #: at this look-up (an assertion in check_match of elf/dl-lookup.c), later ones take the definition.
    unversioned: bool = False
    #: A weak function without a provider in a program at a fixed address, which has a slot of its own for it and lends
    #: that out as the function's address: no test for 0 sees that it is missing, and a call ends at address 0.
    slot: bool = False


class Verdict(Choice):
    """How many copies of one piece of state a process holds; values are part of the JSON."""

    ONE = "one"
    SPLIT = "split"
    SPLIT_UNLESS_GLOBAL = "split-unless-global"
    ABSENT = "absent"
    UNKNOWN = "unknown"
