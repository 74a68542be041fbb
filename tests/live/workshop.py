"""Makes C programs that open libraries, tell what they have loaded, and wait; starts them. It judges nothing.

A program tells by dl_iterate_phdr which files are loaded, and asks each plug-in where the state is that it uses:
so many addresses, so many copies.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NOBODY = 65534

#: `host l:PATH g:PATH m:PATH d:PATH` opens PATH locally, globally, in a new namespace, or maps it as data; `n:PATH` and
#: `x:PATH` map its first page MANY times, to be read or to be run. `e:PATH` and `w:PATH` map it as one piece, to be run
#: or to be run and written. `p:` lets what is readable be executable, too, from then on (personality(2)).
#: With OUTLIVED its first thread ends before it waits.
HOST = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <unistd.h>

static int tell(struct dl_phdr_info *info, size_t size, void *data) {
    if (info->dlpi_name[0] == '/') printf("file %s\\n", info->dlpi_name);
    return 0;
}

#ifdef USES_STATE
void *state_get(void);
#endif

#ifdef OUTLIVED
#include <pthread.h>
static void *wait_for_end(void *first) {
    pthread_join(*(pthread_t *)first, 0);
    puts("ready");
    fflush(stdout);
    char one;
    read(0, &one, 1);
    return 0;
}
#endif

#ifndef MANY
#define MANY 1
#endif

int main(int count, char **words) {
    for (int i = 1; i < count; i++) {
        const char *path = words[i] + 2;
        if (words[i][0] == 'd') {
            int file = open(path, O_RDONLY);
            mmap(0, 4096, PROT_READ, MAP_PRIVATE, file, 0);
            mmap(0, 8192, PROT_READ, MAP_SHARED, file, 0);
            close(file);
            continue;
        }
        if (words[i][0] == 'p') {
            if (personality(READ_IMPLIES_EXEC) == -1) printf("error personality\\n");
            continue;
        }
        if (words[i][0] == 'e' || words[i][0] == 'w') {
            int file = open(path, O_RDONLY);
            int rights = PROT_READ | PROT_EXEC | (words[i][0] == 'w' ? PROT_WRITE : 0);
            if (mmap(0, lseek(file, 0, SEEK_END), rights, MAP_PRIVATE, file, 0) == MAP_FAILED) printf("error mmap\\n");
            close(file);
            continue;
        }
        if (words[i][0] == 'n' || words[i][0] == 'x') {
            int file = open(path, O_RDONLY);
            int rights = PROT_READ | (words[i][0] == 'x' ? PROT_EXEC : 0);
            for (int left = MANY; left; left--)
                if (mmap(0, 4096, rights, MAP_PRIVATE, file, 0) == MAP_FAILED) printf("error mmap\\n");
            close(file);
            continue;
        }
        void *handle = words[i][0] == 'm' ? dlmopen(LM_ID_NEWLM, path, RTLD_NOW)
                                          : dlopen(path, RTLD_LAZY | (words[i][0] == 'g' ? RTLD_GLOBAL : RTLD_LOCAL));
        if (!handle) { printf("error %s\\n", dlerror()); continue; }
        void *(*where)(void) = (void *(*)(void))dlsym(handle, "where");
        if (where) printf("state %p\\n", where());
    }
#ifdef USES_STATE
    printf("state %p\\n", state_get());
#endif
    dl_iterate_phdr(tell, 0);
#ifdef OUTLIVED
    static pthread_t first, other;
    first = pthread_self();
    pthread_create(&other, 0, wait_for_end, &first);
    pthread_exit(0);
#endif
    puts("ready");
    fflush(stdout);
    char one;
    return (int)read(0, &one, 1);
}
"""

STATE = "void *state_get(void) { static int state; return &state; }\n"
USER = "void *state_get(void); void *where(void) { return state_get(); }\n"

POLICY = """
[[state]]
name = "counter"
owner = ["libstate.so"]
symbols = ["state_get"]
"""


@dataclass(frozen=True)
class Told:
    """A process that waits, and what it says about itself."""

    pid: int
    files: frozenset[str]
    #: The addresses of the state that its files use.
    states: frozenset[str]
    errors: tuple[str, ...]


class LiveShop:
    """A directory that every user may enter, with programs and libraries in it."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.policy = base / "linkcheck.toml"
        self.policy.write_text(POLICY)

    def library(
        self, name: str, source: str, *arguments: str | Path, soname: str | None = None, compiler: str = "gcc"
    ) -> Path:
        """A shared library; it needs the libraries among `arguments`."""
        path = self.base / name
        flags = ("-shared", "-fPIC", f"-Wl,-soname,{soname or path.name}")
        return self._compile(source, path, compiler, *flags, *arguments)

    def host(self, name: str, *arguments: str | Path, compiler: str = "gcc") -> Path:
        """The program."""
        # musl has no dlmopen.
        source = HOST if compiler == "gcc" else f"#define dlmopen(...) 0\n{HOST}"
        return self._compile(source, self.base / name, compiler, *arguments)

    def _compile(self, source: str, path: Path, compiler: str, *arguments: str | Path) -> Path:
        path.parent.mkdir(exist_ok=True)
        needed = ("-Wl,--no-as-needed", "-Wl,-rpath,$ORIGIN", "-ldl")
        command = [compiler, "-O1", "-w", "-x", "c", "-", "-x", "none", *map(str, arguments), *needed, "-o", str(path)]
        done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return path

    @contextmanager
    def running(
        self,
        program: Path | str,
        *opens: str,
        prefix: Sequence[str | Path] = (),
        env: dict[str, str] | None = None,
        user: int | None = None,
        says: Sequence[str] = (),
    ) -> Iterator[Told]:
        """The process of `program` that has opened `opens` and waits until the end of the block.

        Lines that begin with one of `says` are its own business.
        """
        command = [*map(str, prefix), str(program), *opens]
        if user is not None:
            command = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *command]
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PATH": os.environ["PATH"], **(env or {})},
            cwd=self.base,
        ) as process:
            try:
                yield read_told(process, says)
            finally:
                process.kill()


def read_told(process: subprocess.Popen[str], says: Sequence[str] = ()) -> Told:
    """What `process` prints until it is ready."""
    assert process.stdout is not None
    told: dict[str, list[str]] = {"file": [], "state": [], "error": []}
    for line in process.stdout:
        word, _, rest = line.rstrip("\n").partition(" ")
        if word == "ready":
            break
        if word not in says:
            told[word].append(rest)
    else:
        raise AssertionError(f"{process.args!r} ended with {process.wait()} before it was ready")
    # ld.so keeps the names by which it found the files, the kernel the names without links.
    return Told(
        process.pid, frozenset(map(os.path.realpath, told["file"])), frozenset(told["state"]), tuple(told["error"])
    )


@contextmanager
def open_shop() -> Iterator[LiveShop]:
    """A shop in a directory of its own: pytest's may be entered by its own user only."""
    with tempfile.TemporaryDirectory(prefix="linkcheck-live-") as name:
        base = Path(os.path.realpath(name))
        base.chmod(0o755)
        yield LiveShop(base)
