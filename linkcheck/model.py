"""The words every part shares: images, load sets and outcomes, as frozen values. No I/O, no judgement.

Sources of the facts: System V gABI ("Object Files", "Program Loading and Dynamic Linking"),
glibc <elf.h> for the GNU extensions, and man 8 ld.so for the loader's words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.choice import Choice, IntChoice
from linkcheck.value import Value

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from typing import Protocol
else:
    Protocol = object  # while a program runs a Protocol does nothing, and making one takes as long as reading a file

# ---------------------------------------------------------------- files


class FileKind(Choice):
    """What a file is, judged by its content; the value is the phrase used in messages."""

    SHARED_OBJECT = "a shared object"
    PIE = "a position-independent executable"
    STATIC_PIE = "a static position-independent executable"
    EXECUTABLE = "an executable linked at a fixed address (ET_EXEC)"
    RELOCATABLE = "a relocatable object file"
    CORE = "a core dump"
    DEBUG_ONLY = "a debug-only companion file"
    OTHER_ELF = "an ELF file of an unknown type"
    MALFORMED_ELF = "a malformed ELF file"
    ARCHIVE = "a static archive"
    THIN_ARCHIVE = "a thin static archive"
    LD_SCRIPT = "a GNU ld script"
    LLVM_BITCODE = "LLVM bitcode"
    LTO_OBJECT = "a link-time-optimisation object"
    MACH_O = "a Mach-O file"
    PE = "a PE (Windows) file"
    WASM = "a WebAssembly module"
    ZIP = "a zip archive"
    GZIP = "gzip-compressed data"
    BZIP2 = "bzip2-compressed data"
    XZ = "xz-compressed data"
    ZSTD = "zstd-compressed data"
    LFS_POINTER = "a Git LFS pointer"
    FLATTENED_SYMLINK = "a symbolic link flattened into a text file"
    HTML = "an HTML page"
    TEXT = "a text file"
    DATA = "data of an unknown format"
    EMPTY = "an empty file"
    DIRECTORY = "a directory"
    DANGLING_LINK = "a symbolic link to nothing"
    LOOPING_LINK = "a symbolic link that loops"
    FIFO = "a FIFO"
    DEVICE = "a device"
    SOCKET = "a socket"
    MISSING = "missing"
    UNREADABLE = "unreadable"


#: Kinds that a process can start from (LC301's roles, the choice of roots in a directory).
EXECUTABLE_KINDS = frozenset({FileKind.PIE, FileKind.STATIC_PIE, FileKind.EXECUTABLE})
#: Kinds with facts worth an Image: PT_DYNAMIC, or at least program headers of a complete link.
IMAGE_KINDS = EXECUTABLE_KINDS | {FileKind.SHARED_OBJECT}


class FileIdentity(Value):
    """What `elf.kind.identify` says about a file: the kind, and in `detail` what was seen (one clause)."""

    path: str
    kind: FileKind
    #: What the bytes say, for the message: the magic read, the member count, the bound that is broken.
    detail: str = ""
    #: Libraries an ld script's INPUT/GROUP names, or the target text of a flattened or dangling link.
    names: tuple[str, ...] = ()
    target: Target | None = None


class Target(Value):
    """What a file was built for: e_machine, EI_CLASS and EI_DATA (gABI, "ELF Header")."""

    machine: int
    bits: int  # 32 or 64
    byte_order: str  # "little" or "big"

    @property
    def machine_name(self) -> str:
        """The usual name of e_machine, such as "x86-64" or "aarch64"; "machine 0x…" for one we do not name."""
        return MACHINE_NAMES.get(self.machine, f"machine {self.machine:#x}")

    def __str__(self) -> str:
        return f"{self.machine_name}, {self.bits}-bit, {self.byte_order}-endian"


#: e_machine -> name (gABI registry of machine values; <elf.h> EM_*).
MACHINE_NAMES = {
    2: "sparc",
    3: "i386",
    8: "mips",
    20: "ppc",
    21: "ppc64",
    22: "s390x",
    40: "arm",
    43: "sparc64",
    50: "ia64",
    62: "x86-64",
    183: "aarch64",
    190: "cuda",
    224: "amdgpu",
    243: "riscv",
    247: "bpf",
    258: "loongarch",
}


class SymbolBinding(IntChoice):
    """High nibble of st_info (gABI, "Symbol Table"; GNU_UNIQUE from <elf.h>)."""

    LOCAL = 0
    GLOBAL = 1
    WEAK = 2
    GNU_UNIQUE = 10


class SymbolType(IntChoice):
    """Low nibble of st_info (gABI, "Symbol Table"; GNU_IFUNC from <elf.h>)."""

    NOTYPE = 0
    OBJECT = 1
    FUNC = 2
    SECTION = 3
    FILE = 4
    COMMON = 5
    TLS = 6
    GNU_IFUNC = 10


class Visibility(IntChoice):
    """Low two bits of st_other (gABI, "Symbol Visibility")."""

    DEFAULT = 0
    INTERNAL = 1
    HIDDEN = 2
    PROTECTED = 3


class SymbolVersion(Value):
    """The version of one dynamic symbol (LSB "Symbol Versioning"; glibc dl-lookup.c check_match).

    `library` is the vn_file of an import's DT_VERNEED entry and None for a definition. `hidden` is bit 15 of
    DT_VERSYM: a definition that only an import naming this very version may bind to. `weak` is VER_FLG_WEAK.
    """

    name: str
    hidden: bool = False
    library: str | None = None
    weak: bool = False
    #: The version is the library's own base definition (VER_FLG_BASE), which names the file, not a version.
    base: bool = False


class Symbol(Value):
    """One entry of a dynamic symbol table (gABI, "Symbol Table").

    `binding` and `type` are plain integers where the file holds a value that neither enum names.
    """

    name: str
    binding: int
    type: int
    visibility: Visibility
    defined: bool
    value: int
    size: int
    version: SymbolVersion | None = None

    @property
    def weak(self) -> bool:
        """Whether the binding is STB_WEAK."""
        return self.binding == SymbolBinding.WEAK


#: An import that must be defined somewhere: its name, the version it names, and the library (vn_file) that is expected
#: to define that version; a plain tuple, because a process has thousands.
Demand = tuple[str, str | None, str | None]


class SymbolTable(Protocol):
    """The dynamic symbol table of one image, as ld.so would see it; it may read the file only when asked.

    Every method raises MalformedElfError when an entry does not fit the file.
    """

    @property
    def unseen(self) -> str | None:
        """Why part of the table cannot be seen, or None. Rules answer `unknown` instead of trusting an absence."""

    def exported(self, name: str) -> tuple[Symbol, ...]:
        """The definitions called `name` that another image can bind to: defined, not local, not hidden."""

    def imported(self, name: str) -> Symbol | None:
        """The import called `name`, or None when the image does not import it."""

    def imports(self) -> Iterator[Symbol]:
        """Every undefined entry that the loader looks up: of default visibility, and not local."""

    def count_imports(self) -> int:
        """How many `imports` has, without making them."""

    def exports(self) -> Iterator[Symbol]:
        """Every definition that another image can bind to, in table order."""

    def private(self, names: Collection[str]) -> tuple[str, ...]:
        """Those of `names` that `.symtab` defines and no other image can bind to; () when there is no `.symtab`.

        Extra evidence only: a stripped file answers (), which says nothing.
        """

    def private_with(self, parts: Collection[str]) -> tuple[str, ...]:
        """The names as of `private` that hold every one of `parts`; () for no parts and when there are too many."""

    def copied(self, names: Collection[str]) -> tuple[str, ...]:
        """Those of `names` that are defined only as room for a copy of another file's object (R_*_COPY)."""

    def list_copies(self) -> tuple[Symbol, ...]:
        """All that is defined only as room for a copy, once each; the version is the one that is asked for."""

    def referenced(self, names: Collection[str]) -> tuple[str, ...] | None:
        """Those of the definitions called `names` that some relocation of the file refers to; None: cannot be told.

        ld.so can lead the file's own uses of a definition to another file's only through a relocation.
        """

    def demands(self) -> tuple[Demand, ...] | None:
        """The imports that are not weak, in table order; None when there are too many to keep."""

    def offers(self, names: Collection[str]) -> dict[str, tuple[str | None, ...]]:
        """Those of `names` that `exported` would find, each with the versions it is defined in (None: no version)."""

    def requested(self, names: Collection[str]) -> tuple[str, ...] | None:
        """Those of the imports called `names` that some relocation of the file refers to; None: cannot be told.

        ld.so looks up what a relocation refers to and nothing else (glibc elf/do-rel.h).
        """

    def __iter__(self) -> Iterator[Symbol]:
        """Every entry but the null one, in table order."""


class ListedSymbols(Value):
    """A SymbolTable that holds its entries; for images built from plain values."""

    symbols: tuple[Symbol, ...] = ()
    unseen: str | None = None
    #: Names that only `.symtab` knows.
    local_definitions: frozenset[str] = frozenset()
    #: Names that a copy relocation fills.
    copies: frozenset[str] = frozenset()
    #: Definitions and imports that no relocation refers to; None: cannot be told.
    unreferenced: frozenset[str] | None = frozenset()

    def exported(self, name: str) -> tuple[Symbol, ...]:
        """See SymbolTable.exported."""
        return tuple(s for s in self.exports() if s.name == name)

    def imported(self, name: str) -> Symbol | None:
        """See SymbolTable.imported."""
        return next((s for s in self.imports() if s.name == name), None)

    def imports(self) -> Iterator[Symbol]:
        """See SymbolTable.imports."""
        return (s for s in self.symbols if is_imported(s))

    def count_imports(self) -> int:
        """See SymbolTable.count_imports."""
        return sum(1 for _ in self.imports())

    def exports(self) -> Iterator[Symbol]:
        """See SymbolTable.exports."""
        return (s for s in self.symbols if is_exported(s))

    def private(self, names: Collection[str]) -> tuple[str, ...]:
        """See SymbolTable.private."""
        return tuple(sorted(self.local_definitions.intersection(names)))

    def private_with(self, parts: Collection[str]) -> tuple[str, ...]:
        """See SymbolTable.private_with."""
        return tuple(sorted(n for n in self.local_definitions if parts and all(part in n for part in parts)))

    def copied(self, names: Collection[str]) -> tuple[str, ...]:
        """See SymbolTable.copied."""
        return tuple(name for name in names if name in self.copies)

    def list_copies(self) -> tuple[Symbol, ...]:
        """See SymbolTable.list_copies."""
        return tuple(symbol for symbol in self.exports() if symbol.name in self.copies)

    def referenced(self, names: Collection[str]) -> tuple[str, ...] | None:
        """See SymbolTable.referenced."""
        unreferenced = self.unreferenced
        if unreferenced is None:
            return None
        return tuple(name for name in names if name not in unreferenced and self.exported(name))

    def demands(self) -> tuple[Demand, ...]:
        """See SymbolTable.demands."""
        return tuple(
            (s.name, s.version.name if s.version else None, s.version.library if s.version else None)
            for s in self.imports()
            if not s.weak
        )

    def offers(self, names: Collection[str]) -> dict[str, tuple[str | None, ...]]:
        """See SymbolTable.offers."""
        found = {name: self.exported(name) for name in names}
        return {
            name: tuple(None if s.version is None or s.version.base else s.version.name for s in symbols)
            for name, symbols in found.items()
            if symbols
        }

    def requested(self, names: Collection[str]) -> tuple[str, ...] | None:
        """See SymbolTable.requested."""
        unreferenced = self.unreferenced
        if unreferenced is None:
            return None
        return tuple(name for name in names if name not in unreferenced)

    def __iter__(self) -> Iterator[Symbol]:
        return iter(self.symbols)


def is_exported(symbol: Symbol) -> bool:
    """Whether another image could bind to `symbol` (glibc dl-lookup.c do_lookup_x and gABI visibility)."""
    return (
        symbol.defined
        and symbol.binding != SymbolBinding.LOCAL
        and symbol.visibility in (Visibility.DEFAULT, Visibility.PROTECTED)
    )


def is_imported(symbol: Symbol) -> bool:
    """Whether the loader binds `symbol` to other images' definitions; with another visibility than the default it
    takes it for the image's own (glibc dl-reloc.c and dl-lookup.c).
    """
    return not symbol.defined and symbol.binding != SymbolBinding.LOCAL and symbol.visibility == Visibility.DEFAULT


class ThreadLocalSegment(Value):
    """PT_TLS: the image's own thread-local block. Sizes in bytes."""

    file_size: int
    memory_size: int
    alignment: int


class VersionNeed(Value):
    """One DT_VERNEED entry: versions this image wants from `library` (vn_file), with their VER_FLG_* flags."""

    library: str
    versions: tuple[SymbolVersion, ...]


class DlopenNote(Value):
    """One entry of a file's dlopen metadata (.note.dlopen): a library that it may open at run time."""

    #: Names of one library, the preferred one first; the first that is found is opened.
    sonames: tuple[str, ...]
    #: One of DLOPEN_PRIORITIES.
    priority: str = "recommended"
    feature: str = ""
    description: str = ""


#: How much a file depends on what it may open: not at all without `required`; the second one holds when none is given.
DLOPEN_PRIORITIES = ("required", "recommended", "suggested")


#: DT_FLAGS and DT_FLAGS_1 bits that rules and the loader ask about (gABI; <elf.h>).
DF_SYMBOLIC = 0x2
DF_TEXTREL = 0x4
DF_1_NODEFLIB = 0x800
DF_1_PIE = 0x08000000


class Image(Value):
    """One ELF file that a process could map, as facts.

    `path` is the path it was opened by; `device` and `inode` say which file that was. Names from the file are
    text decoded as UTF-8 with surrogateescape, so that no byte is lost.
    """

    path: str
    kind: FileKind
    target: Target
    soname: str | None = None
    needed: tuple[str, ...] = ()
    #: DT_FILTER and DT_AUXILIARY: libraries that ld.so loads too, and searches before this one in its place.
    filters: tuple[str, ...] = ()
    #: DT_RPATH and DT_RUNPATH as written, `$ORIGIN` unexpanded; None when absent, "" when present and empty.
    rpath: str | None = None
    runpath: str | None = None
    flags: int = 0
    flags_1: int = 0
    #: DT_SYMBOLIC present, or DF_SYMBOLIC in DT_FLAGS.
    symbolic: bool = False
    interpreter: str | None = None
    tls: ThreadLocalSegment | None = None
    #: PT_GNU_STACK has PF_X; None when the header is absent.
    executable_stack: bool | None = None
    build_id: str | None = None
    version_definitions: tuple[SymbolVersion, ...] = ()
    version_needs: tuple[VersionNeed, ...] = ()
    symbols: SymbolTable = ListedSymbols()
    dlopen_notes: tuple[DlopenNote, ...] = ()
    device: int = 0
    inode: int = 0
    #: EI_OSABI and EI_ABIVERSION of e_ident (gABI, "ELF Identification").
    os_abi: int = 0
    abi_version: int = 0

    @property
    def is_executable(self) -> bool:
        """Whether a process can start from this image."""
        return self.kind in EXECUTABLE_KINDS

    @property
    def name(self) -> str:
        """DT_SONAME, or the last part of the path when there is none."""
        return self.soname if self.soname is not None else self.path.rpartition("/")[2]


# ---------------------------------------------------------------- load sets


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
    #: Files of that very name in places no search path of the requester reaches (LC203).
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

    def noted(self) -> tuple[tuple[int, DlopenNote, int | None], ...]:
        """Each entry of dlopen metadata, with the module that has it and the module that satisfies it, if any."""
        known: dict[str, int] = {}
        found = []
        for index, module in enumerate(self.modules):
            for note in module.image.dlopen_notes:
                if not known:
                    for other in range(len(self.modules) - 1, -1, -1):
                        one = self.modules[other]
                        known.update(dict.fromkeys((one.requested_as, one.image.soname or one.requested_as), other))
                found.append((index, note, next((known[name] for name in note.sonames if name in known), None)))
        return tuple(found)

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


# ---------------------------------------------------------------- outcomes


class Severity(Choice):
    """How bad a finding is. Only an ERROR that is not waived makes a run fail (see Report.outcome)."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Confidence(Choice):
    """How directly the evidence shows the fault: HIGH is read from the file, LOW is inferred."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Outcome(Choice):
    """What one check of one subject came to. What could not be seen is UNKNOWN, never PASS."""

    PASS = "pass"  # noqa: S105 - a verdict, not a password
    FINDING = "finding"
    NOT_APPLICABLE = "not-applicable"
    UNKNOWN = "unknown"


class Location(Value):
    """A file, and the symbol in it, when there is one."""

    path: str
    symbol: str | None = None


#: What evidence may hold: the values JSON has.
Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


class Check(Value):
    """One rule applied to one subject, without a finding. `reason` is empty for a plain pass."""

    code: str
    subject: str
    outcome: Outcome
    reason: str = ""


class Finding(Value):
    """One fault: what was read and why it matters (`message`), and the change to make (`remedy`).

    Both may have several lines. A line indented by four spaces is a command or a line of a build file: it is shown as
    it is, so that it can be copied, and as a code block where the format has one.
    """

    code: str
    name: str
    severity: Severity
    confidence: Confidence
    message: str
    remedy: str
    primary: Location
    related: tuple[Location, ...] = ()
    evidence: Mapping[str, Json] = {}


#: What a rule yields.
RuleResult = Check | Finding


def unique(names: Iterable[str]) -> tuple[str, ...]:
    """`names` without repetitions, first occurrence kept."""
    return tuple(dict.fromkeys(names))


def one_line(name: str) -> str:
    """`name` with its control characters (C0, C1, line and paragraph separator) as escapes, `\\n` for a line feed.

    For names that files carry, before they become part of a message: with a line feed of its own a SONAME could add a
    line to a message, a command to a remedy. All other bytes stay, and are the renderers' business.
    """
    if name.isprintable():
        return name
    return "".join(_escape(c) if c < " " or "\x7f" <= c <= "\x9f" or c in "\u2028\u2029" else c for c in name)


def _escape(character: str) -> str:
    code = ord(character)
    if character in "\n\r\t":
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}[character]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
