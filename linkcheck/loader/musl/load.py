"""The load set of one process of musl, in order; it binds no symbol.

Source: musl ldso/dynlink.c (load_library, load_deps, load_preload, dlopen).
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from linkcheck.errors import LinkcheckError
from linkcheck.loader.load import Loading
from linkcheck.loader.musl.machine import find_loader, system_directories
from linkcheck.loader.musl.search import search
from linkcheck.loader.search import Missing, Requester
from linkcheck.model import Attempt, FoundBy, Libc, Module, Unresolved
from linkcheck.value import replace

if TYPE_CHECKING:
    from linkcheck.loader.load import Entry
    from linkcheck.loader.search import Found
    from linkcheck.loader.system import System
    from linkcheck.model import Image

#: Names that begin so are the loader itself, which is all of musl's libraries in one.
_BUILT_IN = ("libc.", "libpthread.", "librt.", "libm.", "libdl.", "libutil.", "libxnet.")
#: A library that defines both is a libc, musl's or another one, and the loader takes itself instead.
_MARKS_OF_A_LIBC = ("__libc_start_main", "stdin")


class MuslLoading(Loading):
    """The state of one process of musl while it loads.

    `by_name` holds short names: the file names of libraries that some search has found. DT_SONAME means nothing.
    """

    libc = Libc.MUSL

    def __init__(self, system: System) -> None:
        """Nothing is loaded yet."""
        super().__init__(system)
        self._loader_entry: Entry | None = None
        self._last_directories: tuple[str, ...] = ()
        #: Index of an entry -> the path that it was opened by.
        self._paths: dict[int, str] = {}

    def add_root(self, root: Image) -> None:
        """Start with `root`."""
        files = self.system.files
        self.loader = find_loader(files, root)
        self._last_directories = system_directories(files, self.loader)
        path = files.inside(root.path)
        if root.is_executable:
            with contextlib.suppress(OSError):
                path = files.canonical(path)
        entry = self._append(Module(root, None, root.path, FoundBy.ROOT), path, set(), None)
        # A program is known by no name and no identity; a library stands for one that some program dlopens by path.
        if not root.is_executable and root.inode:
            self.by_file[(root.device, root.inode)] = entry

    def _find_interpreter_fault(self) -> Unresolved | None:
        # The loader is a library here, too; one that is needed and missing is a fault once.
        if any(self._is_loader(unresolved.needed) for unresolved in self.unresolved):
            return None
        return super()._find_interpreter_fault()

    def _caller(self, _: str | None) -> Entry:
        # Whoever calls dlopen, the search starts at the program.
        return self.entries[0]

    def _request(
        self, requester: Entry, name: str, special: FoundBy | None, *, scope: str, loaded_for: int
    ) -> Entry | None:
        if self._is_loader(name):
            return self._take_loader(requester, name, special)
        known = self._known(requester, name)
        if known is not None:
            return known
        result = self._search(requester, name, special)
        if self.settle is not None:
            result = self.settle(name, result)
        if isinstance(result, Missing):
            self._note_missing(requester, name, special, result)
            return None
        image = result.image
        entry = self.by_file.get((image.device, image.inode)) if image.inode else None
        if entry is None:
            if _is_libc(image):
                return self._take_loader(requester, name, special)
            module = Module(
                image,
                requester.index if special is None else None,
                name,
                special or result.found_by,
                scope,
                loaded_for,
                tried=result.tried,
            )
            entry = self._append(module, result.path, set(), self._asker(requester, special))
            self._paths[entry.index] = result.path
            if image.inode:
                self.by_file[(image.device, image.inode)] = entry
        if "/" not in name:
            self._name(entry)
        return entry

    def _is_loader(self, name: str) -> bool:
        return name == self.loader or name.startswith(_BUILT_IN)

    def _is_there(self, requester: Entry, name: str) -> bool:
        return self._is_loader(name) or super()._is_there(requester, name)

    def _known(self, _: Entry, name: str) -> Entry | None:
        return None if "/" in name else self.by_name.get(name)

    def _asker(self, requester: Entry, special: FoundBy | None) -> Entry | None:
        """Whose search path counts for a request: nobody's for a preload, and the program's for every dlopen."""
        if special is FoundBy.PRELOAD:
            return None
        return self.entries[0] if special is FoundBy.DLOPEN else requester

    def _search(self, requester: Entry, name: str, special: FoundBy | None) -> Found | Missing:
        chain = []
        link = self._asker(requester, special)
        while link is not None:
            chain.append(Requester(link.module.image, link.origin))
            link = link.loader
        target = self.entries[0].module.image.target
        return search(self.system, name, chain, target, self._last_directories, self.probes)

    def _name(self, entry: Entry) -> None:
        """Let `entry` be found by its short name; of two that have the same one, the first in load order is."""
        short = self._paths.get(entry.index, "").rpartition("/")[2]
        known = self.by_name.get(short)
        if known is None or entry.index < known.index:
            self.by_name[short] = entry

    def _take_loader(self, requester: Entry, name: str, special: FoundBy | None) -> Entry | None:
        """The loader itself, which joins the load set when it is first asked for."""
        if self._loader_entry is not None:
            return self._loader_entry
        missing = self._add_loader(requester.index if special is None else None, name)
        if missing is not None:
            if reason := self._other_machine():
                missing = replace(missing, rejected=(), given_up=reason)
            self.unresolved.append(replace(missing, module=requester.index))
        return self._loader_entry

    def _add_loader(self, needed_by: int | None, name: str) -> Unresolved | None:
        """Map the loader; what stands in the load set in its place when it is not on this machine, or broken."""
        path = self.loader
        if path is None:
            return Unresolved(0, name, ())
        shown = self.system.display(path)
        try:
            image = self.system.image(path)
        except LinkcheckError as error:
            reason = getattr(error, "reason", "") or str(error)
            return Unresolved(0, name, (), (Attempt(shown, FoundBy.INTERPRETER, reason),))
        except OSError:
            return Unresolved(0, name, (shown.rpartition("/")[0] or "/",))
        self._loader_entry = self._append(Module(image, needed_by, name, FoundBy.INTERPRETER), path, set(), None)
        # It has nothing to load, whatever its file says.
        self._loader_entry.dependencies = []
        return None


def _is_libc(image: Image) -> bool:
    try:
        return all(image.symbols.exported(name) for name in _MARKS_OF_A_LIBC)
    except LinkcheckError:
        return False  # whoever asks for its symbols meets the fault, and reports it
