"""The load set of one process: what ld.so would map for a root and its dlopens, in order; it binds no symbol.

`Loading` follows glibc; what musl does otherwise is in musl/load.py.
Source: glibc elf/dl-load.c (_dl_map_object, _dl_map_object_from_fd), elf/dl-deps.c (_dl_map_object_deps),
elf/dl-open.c and elf/rtld.c.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from linkcheck.errors import LinkcheckError
from linkcheck.loader.interpreter import find_interpreter_fault
from linkcheck.loader.search import Found, Missing, Probes, Requester, Searcher
from linkcheck.loader.tokens import expand, has_token
from linkcheck.model import DLOPEN_PRIORITIES, FoundBy, Libc, LoadSet, Module, Opened, Unresolved
from linkcheck.value import Value, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from linkcheck.loader.system import System
    from linkcheck.model import Image

    #: What was asked for (tokens expanded) and what the search says, to what is the case.
    Settle = Callable[[str, Found | Missing], Found | Missing]


class Dlopen(Value):
    """One dlopen the process makes. `name` is a path when it has a slash, and is searched for otherwise."""

    name: str
    global_: bool = False
    deepbind: bool = False
    #: Path (host) or SONAME of the module that calls dlopen: its RPATH or RUNPATH is searched. None: the root.
    caller: str | None = None


def load(
    root: Image,
    system: System,
    *,
    preload: Sequence[str] = (),
    dlopen: Sequence[Dlopen] = (),
    settle: Settle | None = None,
    broken: Collection[str] = (),
) -> LoadSet:
    """Everything one process would map: `root`, `preload` (LD_PRELOAD), all they need, and then each `dlopen`.

    At last comes what the loaded files say that they may open (.note.dlopen), with RTLD_LOCAL and in load order. Of
    that only what is `required` is Unresolved when it is not found: the file goes on without the rest.
    `settle` has the last word on what each search found, and no such note counts: for a process that runs already.
    `broken` are names in `preload` and `dlopen` that lead to no file that can be loaded, as the caller has found out:
    they are Unresolved where their turn comes (Unresolved.examined), and nobody looks at them again.

    A dlopen waits for the file that makes it when a later one brings that file. Where ld.so would end the process (a
    file missing or broken), this records an Unresolved and goes on, as ldd does. It raises no error for a file below
    `root`, however broken. A root that is a library is taken as the first object of the process, as `ldd` takes it.
    """
    loading = _begin(root, system)
    loading.settle = settle
    loading.broken = frozenset(broken)
    loading.add_root(root)
    for name in preload:
        loading.add_preload(name)
    loading.add_dependencies([entry.index for entry in loading.entries])
    loading.open_in_turn(dlopen)
    if settle is None:  # what a process may open says nothing of one that runs: what it has opened is mapped
        loading.open_noted()
    return loading.finish()


def _begin(root: Image, system: System) -> Loading:
    """A process of `root` in which nothing is loaded yet, by the rules of its C library."""
    if system.libc_of(root) is Libc.MUSL:
        from linkcheck.loader.musl.load import MuslLoading

        return MuslLoading(system)
    return Loading(system)


class Entry:
    """A Module in the making, with what ld.so keeps in its link_map."""

    __slots__ = ("dependencies", "index", "loader", "module", "origin")

    def __init__(self, index: int, module: Module, origin: str, loader: Entry | None) -> None:
        self.index = index
        self.module = module
        #: What $ORIGIN stands for.
        self.origin = origin
        #: The entry for which it was loaded (l_loader); None for the root and for what dlopen opened.
        self.loader = loader
        #: Indices for each of its DT_NEEDED; None as long as they have not been loaded.
        self.dependencies: list[int | None] | None = None


class Loading:
    """The state of one process while it loads."""

    #: Whose rules these are.
    libc = Libc.GLIBC

    def __init__(self, system: System) -> None:
        """Nothing is loaded yet."""
        self.system = system
        #: See `load`.
        self.settle: Settle | None = None
        self.broken: frozenset[str] = frozenset()
        self.probes = Probes()
        #: The loader that the process starts with.
        self.loader: str | None = None
        self.entries: list[Entry] = []
        self.unresolved: list[Unresolved] = []
        self.opened: list[Opened] = []
        #: What is found without a search: by the path it was mapped by, each name it was requested by, its SONAME.
        self.by_name: dict[str, Entry] = {}
        self.by_file: dict[tuple[int, int], Entry] = {}
        #: By the index of who asks, and whether by dlopen.
        self._searchers: dict[tuple[int, bool], Searcher] = {}

    def add_root(self, root: Image) -> None:
        """Start with `root`."""
        self.loader = self.system.loader_of(root)
        files = self.system.files
        path = files.inside(root.path)
        if root.is_executable:
            # The kernel names an executable by its path without links; a library keeps the path it was found by.
            with contextlib.suppress(OSError):
                path = files.canonical(path)
        module = Module(root, None, root.path, FoundBy.ROOT)
        # The executable is known by no path and by no file identity, only by a DT_SONAME if it has one.
        names = {root.soname} if root.soname is not None else set()
        entry = self._append(module, path, names, None)
        if not root.is_executable and root.inode:
            self.by_file[(root.device, root.inode)] = entry

    def add_preload(self, name: str) -> None:
        """Load what an entry of LD_PRELOAD names."""
        # What cannot be preloaded is passed over by ld.so with a message; it is unresolved for whoever asked for it.
        if name in self.broken:
            self._give_up(self.entries[0], name, FoundBy.PRELOAD)
            return
        self._request(self.entries[0], self._inside(name), FoundBy.PRELOAD, scope="global", loaded_for=0)

    def add_dependencies(self, roots: Sequence[int], scope: str = "global", loaded_for: int = 0) -> list[int]:
        """Load what `roots` need, breadth first; indices of all of it, `roots` included, in search order."""
        order = list(roots)
        listed = set(roots)
        for index in order:
            entry = self.entries[index]
            if entry.dependencies is None:
                entry.dependencies = []
                for needed in entry.module.image.needed:
                    found = self._request(entry, needed, None, scope=scope, loaded_for=loaded_for)
                    entry.dependencies.append(found.index if found else None)
            for dependency in entry.dependencies:
                if dependency is not None and dependency not in listed:
                    listed.add(dependency)
                    order.append(dependency)
        return order

    def open_in_turn(self, requests: Sequence[Dlopen]) -> None:
        """Make each dlopen, and load what it needs, once its caller is loaded; at last those whose caller never is."""
        waiting: list[Dlopen] = []
        for request in requests:
            waiting.append(request)
            while (ready := next((one for one in waiting if self._is_loaded(one.caller)), None)) is not None:
                waiting.remove(ready)
                self._open(self._caller(ready.caller), ready)
        for request in waiting:
            self._open(self.entries[0], request)

    def open_noted(self) -> None:
        """Open the first of the names in each entry of dlopen metadata that can be found; what is opened has more."""
        for entry in self.entries:
            for note in entry.module.image.dlopen_notes:
                if any(self._is_there(entry, name) for name in note.sonames):
                    continue
                searched = [(name, self._search(entry, name, FoundBy.DLOPEN)) for name in note.sonames]
                found = next((name for name, result in searched if isinstance(result, Found)), None)
                if found is not None:
                    self._open(entry, Dlopen(found), noted=True)
                elif note.priority == DLOPEN_PRIORITIES[0]:
                    self._open(entry, Dlopen(note.sonames[0]), noted=True)

    def _open(self, caller: Entry, request: Dlopen, *, noted: bool = False) -> None:
        scope = "global" if request.global_ else "local"
        name = request.name
        if name in self.broken and not noted:
            self._give_up(caller, name, FoundBy.DLOPEN)
            return
        # A new module is loaded for itself: its index is the next one.
        entry = self._request(caller, self._inside(name), FoundBy.DLOPEN, scope=scope, loaded_for=len(self.entries))
        if entry is None:
            return
        order = self.add_dependencies([entry.index], scope, entry.index)
        if request.global_:
            for index in order:
                member = self.entries[index]
                member.module = replace(member.module, scope="global")
        self.opened.append(Opened(entry.index, request.global_, request.deepbind, caller.index, noted))

    def _inside(self, name: str) -> str:
        """The machine's name for a file that the host calls `name`; one with a token is the machine's already."""
        files = self.system.files
        return name if files.is_host or not name.startswith("/") or has_token(name) else files.inside(name)

    def _give_up(self, requester: Entry, name: str, special: FoundBy) -> None:
        """Miss `name`, which is in `broken`."""
        self.unresolved.append(
            Unresolved(requester.index, name, (), special=special, loaded=len(self.entries), examined=True)
        )

    def finish(self) -> LoadSet:
        """The load set of all that was loaded."""
        noted = self._find_noted() if any(entry.module.image.dlopen_notes for entry in self.entries) else {}
        modules = tuple(
            replace(e.module, dependencies=tuple(e.dependencies or ()), noted=noted.get(e.index, ()))
            for e in self.entries
        )
        interpreter = self._find_interpreter_fault() if self.settle is None else None
        return LoadSet(modules, tuple(self.unresolved), tuple(self.opened), libc=self.libc, interpreter=interpreter)

    def _find_noted(self) -> dict[int, tuple[int | None, ...]]:
        """For each module with dlopen metadata the modules that satisfy its entries (Module.noted)."""
        known: dict[str, int] = {}
        for entry in self.entries:
            module = entry.module
            for name in (module.requested_as, module.image.soname or module.requested_as):
                known.setdefault(name, entry.index)
        return {
            entry.index: tuple(
                next((known[name] for name in note.sonames if name in known), None)
                for note in entry.module.image.dlopen_notes
            )
            for entry in self.entries
        }

    def _find_interpreter_fault(self) -> Unresolved | None:
        fault = find_interpreter_fault(self.entries[0].module.image, self.system)
        if fault is not None and not fault.given_up and (reason := self._other_machine()):
            return replace(fault, rejected=(), given_up=reason)
        return fault

    def _is_loaded(self, caller: str | None) -> bool:
        return caller is None or any(caller in (e.module.image.path, e.module.image.soname) for e in self.entries)

    def _caller(self, name: str | None) -> Entry:
        if name is not None:
            for entry in self.entries:
                if name in (entry.module.image.path, entry.module.image.soname):
                    return entry
        return self.entries[0]

    def _request(
        self, requester: Entry, name: str, special: FoundBy | None, *, scope: str, loaded_for: int
    ) -> Entry | None:
        """The entry that satisfies `name`, mapped now if need be; None, and an Unresolved, when there is none.

        `special` is how the request was made when it was no NEEDED.
        """
        known = self._known(requester, name)
        if known is not None:
            return known
        result = self._search(requester, name, special)
        if self.settle is not None:
            result = self.settle(self._expand(requester, name), result)
        if isinstance(result, Missing):
            self._note_missing(requester, name, special, result)
            return None
        image = result.image
        same_file = self.by_file.get((image.device, image.inode)) if image.inode else None
        expanded = self._expand(requester, name)
        if same_file is not None:
            self.by_name.setdefault(expanded, same_file)
            return same_file
        # dlopen's caller only lends its search paths; the opened module has no loader (__RTLD_CALLMAP).
        loader = None if special is FoundBy.DLOPEN else requester
        module = Module(
            image,
            None if special in (FoundBy.DLOPEN, FoundBy.PRELOAD) else requester.index,
            name,
            special or result.found_by,
            scope,
            loaded_for,
            tried=result.tried,
        )
        names = {result.path, expanded}
        if image.soname is not None:
            names.add(image.soname)
        entry = self._append(module, result.path, names, loader)
        if image.inode:
            self.by_file[(image.device, image.inode)] = entry
        return entry

    def _note_missing(self, requester: Entry, name: str, special: FoundBy | None, result: Missing) -> None:
        if not result.given_up and (reason := self._other_machine()):
            from linkcheck.loader.other_machine import leave_out_this_machine

            origins = [entry.origin for entry in self.entries]
            result = leave_out_this_machine(result, name, origins, reason, named=special is not None)
        self.unresolved.append(
            Unresolved(
                requester.index,
                name,
                result.directories,
                result.rejected,
                given_up=result.given_up,
                cache_fault=result.cache_fault,
                special=special,
                loaded=len(self.entries),
            )
        )

    def _other_machine(self) -> str:
        """Why this machine's directories tell nothing of this process, or "", also for one that runs here."""
        if self.settle is not None:
            return ""
        return self.system.other_machine(self.entries[0].module.image.target, self.loader)

    def _is_there(self, requester: Entry, name: str) -> bool:
        """Whether `name` asks for something that is loaded, as far as that is known without a search."""
        return self._known(requester, name) is not None

    def _known(self, requester: Entry, name: str) -> Entry | None:
        return self.by_name.get(self._expand(requester, name))

    def _expand(self, requester: Entry, name: str) -> str:
        if "$" not in name:
            return name
        target = requester.module.image.target
        return expand(name, lambda token: self.system.token_value(target, self.loader, requester.origin, token)) or name

    def _search(self, requester: Entry, name: str, special: FoundBy | None) -> Found | Missing:
        interpreter = self._interpreter(requester.module.image, name)
        if interpreter is not None:
            return interpreter
        by_dlopen = special is FoundBy.DLOPEN
        searcher = self._searchers.get((requester.index, by_dlopen))
        if searcher is None:
            chain = []
            link: Entry | None = requester
            while link is not None:
                chain.append(Requester(link.module.image, link.origin))
                link = link.loader
            root = self.entries[0]
            executable = Requester(root.module.image, root.origin)
            searcher = Searcher(self.system, chain, executable, self.loader, opened_by_dlopen=by_dlopen)
            self._searchers[requester.index, by_dlopen] = searcher
        return searcher.search(name, self.probes)

    def _interpreter(self, image: Image, name: str) -> Found | None:
        """The loader, when `name` is its path or its SONAME: it is mapped already and never searched for."""
        path = self.loader
        # Only a look at the file tells its SONAME; by convention both ends are called alike, so others cost nothing.
        if path is None or name not in (path, path.rpartition("/")[2]):
            return None
        try:
            loader = self.system.image(path)
        except (LinkcheckError, OSError):
            return None
        if loader.target != image.target or name not in (path, loader.name):
            return None
        return Found(loader, path, FoundBy.INTERPRETER, ())

    def _append(self, module: Module, path: str, names: set[str], loader: Entry | None) -> Entry:
        origin = self.system.files.absolute(path).rpartition("/")[0] or "/"
        entry = Entry(len(self.entries), module, origin, loader)
        self.entries.append(entry)
        for name in names:
            self.by_name.setdefault(name, entry)
        return entry
