"""A random link graph: what is invented from a seed, before anything is built."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

MAIN = 99
IMPORTS = ("import", "weak-import")
FUNCTIONS = (*IMPORTS, "plain", "weak", "hidden", "protected", "none", "v1", "v1-hidden", "v1-v2")
MAIN_KINDS = (*IMPORTS, "plain", "weak", "none")
#: STB_GNU_UNIQUE: used through a relocation, protected and so without one, and without one by another name.
UNIQUE = ("unique", "unique-protected", "unique-direct")
OBJECTS = (*IMPORTS, "plain", "weak", "hidden", "protected", *UNIQUE, "none", "v1")
MAIN_OBJECTS = (*MAIN_KINDS, "unique")


@dataclass
class Part:
    """One module of a graph, before it is built."""

    number: int
    directory: str
    file: str
    soname: str | None
    function: str
    object_: str
    needs: list[int]
    by_path: bool
    paths: list[str] = field(default_factory=list)
    tag: str = "runpath"
    symbolic: bool = False
    stripped: bool = False
    #: Linked by gold where there is one; it binds what -Bsymbolic means for good, STB_GNU_UNIQUE too.
    gold: bool = False

    @property
    def path(self) -> str:
        return f"{self.directory}/{self.file}"


@dataclass
class Graph:
    """A program: its libraries in build order, how the executable is linked, and what it opens."""

    seed: int
    parts: list[Part]
    main: Part
    flags: list[str]
    static_code: bool
    opens: list[tuple[str, str]]
    preload: list[str]
    library_path: str | None
    removed: str | None


def invent(seed: int) -> Graph:
    """The graph of this seed."""
    chance = random.Random(seed)
    parts: list[Part] = []
    directories = ["d0", "d1", "d2"]

    def paths() -> list[str]:
        picked = chance.sample(directories, chance.choice((0, 1, 2, 3, 3, 3)))
        return [f"$ORIGIN/../{directory}" for directory in picked]

    count = chance.randint(2, 7)
    liking = chance.choice(("plain", "hidden", "unique", "unique", "v1", "weak", "protected", "any"))
    much_symbolic = chance.random() < 0.3

    def pick(kinds: tuple[str, ...]) -> str:
        roll = chance.random()
        if roll < 0.4:
            return chance.choice(IMPORTS if roll < 0.05 else ("import",))
        if liking in kinds and roll < 0.7:
            return chance.choice((liking, liking, *UNIQUE)) if liking == "unique" and kinds is OBJECTS else liking
        return chance.choice(kinds)

    for number in range(count):
        name = f"libm{number}.so"
        soname: str | None = name
        directory = chance.choice(directories)
        if parts and chance.random() < 0.15:
            twin = chance.choice(parts)
            name, soname = twin.file, twin.soname
            others = [d for d in directories if all(p.path != f"{d}/{name}" for p in parts)]
            if not others:
                name, soname = f"libm{number}.so", f"libm{number}.so"
            else:
                directory = chance.choice(others)
        elif chance.random() < 0.15:
            soname = None
        elif chance.random() < 0.1:
            soname = f"libm{number}.so.1"
        parts.append(
            Part(
                number,
                directory,
                name,
                soname,
                pick(FUNCTIONS),
                pick(OBJECTS),
                sorted(
                    chance.sample(range(number), min(number, chance.choice((0, 0, 1, 1, 2, 3)))),
                    key=lambda _: chance.random(),
                ),
                chance.random() < 0.15,
                paths(),
                chance.choice(("rpath", "runpath", "runpath")),
                chance.random() < (0.6 if much_symbolic else 0.2),
                chance.random() < 0.3,
                chance.random() < 0.25,
            )
        )
    needs = chance.sample(range(count), chance.randint(0, min(3, count)))
    function, object_ = pick(MAIN_KINDS), pick(MAIN_OBJECTS)
    # The linker wants every strong import of an executable defined by something on its own line.
    if function in IMPORTS and not any(
        parts[n].function not in (*IMPORTS, "hidden", "none", "v1-hidden") for n in needs
    ):
        function = chance.choice(("plain", "none"))
    if object_ in IMPORTS and not any(parts[n].object_ not in (*IMPORTS, "hidden", "none") for n in needs):
        object_ = chance.choice(("plain", "none"))
    main = Part(MAIN, "bin", "main", None, function, object_, needs, chance.random() < 0.1)
    main.paths = [f"$ORIGIN/../{d}" for d in chance.sample(directories, 3 if chance.random() < 0.8 else 1)]
    main.tag = chance.choice(("rpath", "rpath", "runpath"))
    static_code = chance.random() < 0.4
    flags = ["-no-pie"] if static_code else ["-pie"]
    if chance.random() < 0.5:
        flags.append("-rdynamic")
    opens = []
    for part in chance.sample(parts, chance.choice((0, 1, 1, 2, 3)) if count > 3 else 1):
        name = part.file if chance.random() < 0.2 else part.path
        opens.append((chance.choice("llggd"), name))
    preload = [part.path for part in chance.sample(parts, 1)] if chance.random() < 0.15 else []
    library_path = chance.choice((None, None, None, "d0", "d1:d2", "d2:"))
    removed = chance.choice(parts).path if chance.random() < 0.05 else None
    return Graph(seed, parts, main, flags, static_code, opens, preload, library_path, removed)
