"""LC304 undefined-symbol: a file imports a symbol that nobody defines where ld.so would look for it.

## What it checks

Every import of every file of the load set that is not weak and that a relocation refers to, an object that a program
holds a copy of (R_*_COPY) included: some file in the scope in
which ld.so looks it up (the program and what it needs, then what came with the dlopen) has to define it, in the version
that the import names.

A program's process is known, so what is missing there is an error. A library that is judged on its own may be opened by
a program that defines the symbol: then it is a warning, and only information for a library that is found in a directory
and has no SONAME, for that is what plug-ins of any host look like. Nothing is said of [host symbols](#options), and of
a library whose missing symbols one program among the inputs exports. While a needed library is missing, what nobody
else defines is `unknown`.

## Why it matters

The program ends with `symbol lookup error: undefined symbol`: at once for data and with `-z now`, and otherwise when
the function is called for the first time, perhaps at a customer. A library that does not name the library it uses
works only in programs that happen to have loaded that one before, with RTLD_GLOBAL.

## Bad

```console
$ echo 'int table_size(void); int used(void) { return table_size(); }' > used.c
$ echo 'int used(void); int main(void) { return used(); }' > main.c
$ gcc -shared -fPIC used.c -Wl,-soname,libused.so -o libused.so    # without -ltable
$ gcc main.c -L. -lused -Wl,-rpath,'$ORIGIN' -Wl,--allow-shlib-undefined -o main
$ linkcheck verify main --select LC304
```

## Good

```console
$ echo 'int table_size(void) { return 0; }' > table.c
$ echo 'int table_size(void); int used(void) { return table_size(); }' > used.c
$ echo 'int used(void); int main(void) { return used(); }' > main.c
$ gcc -shared -fPIC table.c -Wl,-soname,libtable.so -o libtable.so
$ gcc -shared -fPIC used.c -L. -ltable -Wl,-rpath,'$ORIGIN',-soname,libused.so -o libused.so
$ gcc main.c -L. -lused -Wl,-rpath,'$ORIGIN' -o main
$ linkcheck verify main --select LC304
```

## Causes and remedies

* The library that defines it is not on the link line of the file that uses it: put it there. `-Wl,-z,defs` makes the
  linker refuse such a file.
* `-Wl,--as-needed` and the library in front of the objects that use it: put libraries behind them.
* An older or another build of the library is found first: `linkcheck tree` shows which file, and why.
* A C++ name that differs only by `__cxx11` or a namespace: built against another version, or another string ABI.
* A plug-in that takes the symbol from its host: name the host (`linkcheck verify HOST --dlopen PLUGIN`), and see that
  it exports the symbol: a program exports nothing of its own unless it is linked with `-rdynamic`
  (`-Wl,--export-dynamic-symbol=NAME`, CMake's `ENABLE_EXPORTS`). While the host has its `.symtab`, the finding says
  that it is defined there, except of a lone plug-in, which is information. Where nobody knows the host, list the
  symbol under `host-symbols`.

## Options

`host-symbols` in the policy: patterns of symbols that an unknown host defines. They excuse nothing in a process whose
program is known. Without it they are those of the well-known hosts. Most of these are ordinary libraries as well, so
they are excused only where the file, or the library that loads it, defines what that host looks up in its plug-ins:

* ld.so (`__tls_get_addr`, `___tls_get_addr`), CPython and PyPy (`Py*`, `_Py*`): in every file.
* Node.js (`napi_*`, `node_api_*`, `uv_*`, classes of `v8` and `node`): `napi_register_module_v*`,
  `node_register_module_v*`, `_register_*`, or a call of `napi_module_register` or `node_module_register`.
* PHP (`zend_*`, `php_*`, `sapi_*`, `_emalloc*` and its kin): `get_module`, `zend_extension_entry`.
* The JVM (`JVM_*`, `JNI_CreateJavaVM` and its kin): `JNI_OnLoad*`, `Java_*`, `Agent_OnLoad*`.
* Lua (`lua_*`, `luaL_*`): `luaopen_*`. Ruby (`rb_*`, `ruby_*`): `Init_*`.
* Perl (`Perl_*`, `PerlIO*`, `PL_*`, `perl_*`): `boot_*`. Tcl (`Tcl_*`, `Tk_*`): `*_Init`, `*_SafeInit`.
* R (`R_*`, `Rf_*`): `R_init_*`. Julia (`jl_*`, `ijl_*`): `jl_image_*`, `jl_system_image_*`, `jl_sysimg_*`.
* Apache (`ap_*`): `*_module`.

`external`: an external library is taken to define what is missing.

## What it cannot see

Binding is taken as with RTLD_NOW, `-z now` or LD_BIND_NOW: all that a dlopen brings is bound when it ends. A function
that is bound lazily is looked up at its first call, and may then find what was opened with RTLD_GLOBAL in between; the
finding says so, with confidence medium.

Symbols that are looked up with dlsym. Whether a program calls what it imports. Whether a thread-local import gets an
ordinary definition, at which ld.so ends the process. Whether the static thread-local storage lasts for all that is
opened. What the C library and the compiler's runtime import from each other,
where the system provides them. With a filter (DT_FILTER, DT_AUXILIARY) in the process, what nobody else defines is
`unknown`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.loader.scope import describe_filters
from linkcheck.loader.undefined import DefinitionFinder, count_asked
from linkcheck.loader.versions import compare_versions
from linkcheck.model import Check, Confidence, Finding, Location, Outcome, Severity
from linkcheck.rules.kept import memory_of_run
from linkcheck.rules.ownership import is_opened, missing_libraries
from linkcheck.rules.rule import Rule, RuleMeta
from linkcheck.rules.wording import (
    MOST_IN_EVIDENCE,
    chain_text,
    counted,
    judged_otherwise,
    listed,
    name_any_symbol,
    not_found,
)
from linkcheck.text import one_line, unique

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from linkcheck.loader.versions import VersionFault
    from linkcheck.model import Demand, Image, LoadSet, RuleResult
    from linkcheck.policy.settings import Settings
    from linkcheck.rules.unexported_definition import Unexported

META = RuleMeta("LC304", "undefined-symbol", "a file imports a symbol that nobody defines", Severity.ERROR, "0.1")

#: Symbols that a message names before it only counts them.
_MOST_NAMED = 8


def check(load_set: LoadSet, settings: Settings) -> Iterator[RuleResult]:
    """Yield a result for each file with imports that nobody defines, or one pass for the whole load set."""
    judge = _Judge(load_set, settings, memory_of_run(DefinitionFinder))
    found = False
    for undefined in judge.finder.find(load_set):
        for result in judge.judge(undefined.module, undefined.demands, undefined.unseen):
            found = True
            yield result
    if not found:
        reason = f"{counted(count_asked(load_set), 'file')}, every import defined"
        yield Check(META.code, load_set.root.path, Outcome.PASS, reason)


class _Judge:
    """What one load set's missing definitions come to."""

    def __init__(self, load_set: LoadSet, settings: Settings, finder: DefinitionFinder) -> None:
        self.load_set = load_set
        self.settings = settings
        self.finder = finder
        self._refused: tuple[VersionFault, ...] | None = None

    def judge(self, index: int, demands: tuple[Demand, ...], unseen: str) -> Iterator[RuleResult]:
        load_set = self.load_set
        image = load_set.modules[index].image
        if unseen:
            yield Check(META.code, image.path, Outcome.UNKNOWN, unseen)
            return
        host_known = load_set.root.is_executable
        refused = self._refused_versions(index)
        demands = tuple(demand for demand in demands if (demand[2], demand[1]) not in refused)
        left = demands
        if not host_known:
            excused = self._host_symbols(image, frozenset(demand[0] for demand in demands))
            left = tuple(demand for demand in demands if demand[0] not in excused)
            if len(left) < len(demands):
                reason = f"{_counted(len(demands) - len(left))} left to the program that opens it (host-symbols)"
                yield Check(META.code, load_set.root.path, Outcome.NOT_APPLICABLE, reason)
        if not left or not (asked := self.finder.requested(image, left)):
            return
        hosted, left = len(left) < len(demands), asked
        names = self._name(left)
        if reason := self._unseen_definitions():
            yield Check(META.code, image.path, Outcome.UNKNOWN, f"{reason} may define {names}")
        elif load_set.unresolved:
            external = unique(unresolved.needed for unresolved in load_set.unresolved)
            be = "is" if len(external) == 1 else "are"
            reason = f"{listed(external)} {be} declared external, and {be} taken to define {names}"
            yield Check(META.code, image.path, Outcome.NOT_APPLICABLE, reason)
        elif host_known:
            yield self._missing_in_program(index, left)
        elif host := self._find_host(left):
            reason = f"{host} exports {names}: `linkcheck verify {host} --dlopen {load_set.root.path}` judges both"
            yield Check(META.code, image.path, Outcome.NOT_APPLICABLE, reason)
        else:
            # What takes other symbols from a well-known host has that one, which does not define these.
            yield self._missing_in_library(index, left, hosted=hosted)

    def _refused_versions(self, index: int) -> frozenset[tuple[str, str]]:
        """Library and version of what the library lacks as a whole: LC305 says so, and ld.so never asks for symbols."""
        if self._refused is None:
            self._refused = compare_versions(self.load_set).refused
        return frozenset(
            (fault.library, version) for fault in self._refused if fault.module == index for version in fault.versions
        )

    def _host_symbols(self, image: Image, names: frozenset[str]) -> frozenset[str]:
        """Those of `names` that the unknown program defines: it opens the root, which may need `image`."""
        if self.settings.host_symbols is None:
            from linkcheck.policy.hosts import find_host_symbols

            return find_host_symbols(names, {image.symbols, self.load_set.root.symbols})
        from linkcheck.policy.patterns import matches_any

        patterns = self.settings.host_symbols
        return frozenset(name for name in names if matches_any(name, patterns))

    def _unseen_definitions(self) -> str:
        """What may hold a definition that was not seen, or nothing."""
        if missing := missing_libraries(self.load_set, self.settings):
            return not_found(unique(unresolved.needed for unresolved in missing))
        for module in self.load_set.modules:
            if reason := module.image.symbols.unseen:
                return f"{module.image.path}: {reason}, and it"
        filters = describe_filters(self.load_set)
        return f"{filters}, and it" if filters else ""

    def _find_host(self, demands: Sequence[Demand]) -> str:
        """The path of a program among the inputs that exports all of `demands`, or nothing."""
        names = frozenset(name for name, _, _ in demands)
        # Hundreds may be asked, and nearly all lack even the first: `exported` tells that without opening them again.
        first = demands[0][0]
        for image in self.load_set.beside:
            if image.is_executable and image.symbols.exported(first) and names <= image.symbols.offers(names).keys():
                return image.path
        return ""

    def _missing_in_program(self, index: int, demands: Sequence[Demand]) -> Finding:
        from linkcheck.rules.late_definition import tell_late_definition  # only a finding needs it

        image = self.load_set.modules[index].image
        what = _it(len(demands))
        late = tell_late_definition(self.load_set, index, [name for name, _, _ in demands])
        unexported = self._find_unexported(index, demands)
        message = (
            f"{image.path} imports {self._name(demands)}, and no file in which ld.so would look for {what} defines "
            f"{what}{self._chain(index)}: it ends in an undefined symbol, at once or at the first call."
            f"{self._tell_unexported(unexported, demands)}{late}"
        )
        confidence = Confidence.MEDIUM if late else Confidence.HIGH
        return self._finding(
            index, demands, message, self._remedy(index, demands, unexported), Severity.ERROR, confidence
        )

    def _missing_in_library(self, index: int, demands: Sequence[Demand], *, hosted: bool) -> Finding:
        image = self.load_set.modules[index].image
        what = _it(len(demands))
        plug_in = index == 0 and image.soname is None and not self.load_set.named and not hosted
        # A directory may hold hundreds of plug-ins beside as many programs, and each .symtab is gone through anew.
        unexported = None if plug_in else self._find_unexported(index, demands)
        message = (
            f"{image.path} imports {self._name(demands)}, and neither it nor any library that it needs defines {what}: "
            f"it works only in a program that exports {what}, or has opened a library with {what} with RTLD_GLOBAL."
            f"{self._tell_unexported(unexported, demands)}"
        )
        severity = Severity.INFO if plug_in else Severity.WARNING
        return self._finding(
            index, demands, message, self._remedy(index, demands, unexported), severity, Confidence.MEDIUM
        )

    def _chain(self, index: int) -> str:
        return f" (loaded as {chain_text(self.load_set, index)})" if index else ""

    def _finding(
        self,
        index: int,
        demands: Sequence[Demand],
        message: str,
        remedy: str,
        severity: Severity,
        confidence: Confidence,
    ) -> Finding:
        image = self.load_set.modules[index].image
        return META.finding(
            message,
            remedy,
            Location(image.path, demands[0][0]),
            related=tuple(Location(image.path, name) for name, _, _ in demands[1:MOST_IN_EVIDENCE]),
            evidence={
                "symbols": [_text(demand) for demand in demands[:MOST_IN_EVIDENCE]],
                "count": len(demands),
                "chain": [self.load_set.modules[i].image.path for i in self.load_set.chain(index)],
            },
            severity=severity,
            confidence=confidence,
        )

    def _remedy(self, index: int, demands: Sequence[Demand], unexported: Unexported | None) -> str:
        """What to link or to export, when a file among the inputs or in the process defines what is missing."""
        path = self.load_set.modules[index].image.path
        if other := judged_otherwise(self.load_set):
            return other
        wanted = {name: version for name, version, _ in demands}
        known = (*(module.image for module in self.load_set.modules), *self.load_set.beside)
        for owner in known:
            if owner.is_executable or owner.path == path or not owner.symbols.exported(demands[0][0]):
                continue
            offers = owner.symbols.offers(wanted)
            if any(name not in offers or version not in offers[name] for name, version in wanted.items()):
                continue
            return f"{owner.path} defines {_it(len(demands))}: link {path} to it, so that it names it as needed."
        from linkcheck.rules.unexported_definition import export_lines, export_remedy, is_stripped

        link = (
            f"Link {path} to the library that defines {_it(len(demands))}, behind the objects that use it; then let "
            "the linker refuse what is left:\n    c++ -shared <objects> -L<directory> -l<library> -Wl,-z,defs"
        )
        symbol = one_line(demands[0][0])
        if unexported is not None:
            remedy = export_remedy(unexported.image, one_line(unexported.names[0]))
            return remedy if len(unexported.names) == len(demands) else f"{remedy}\nFor the others: {link}"
        if not self.load_set.root.is_executable:
            return (
                f"{link}\nor, when the program that opens it exports {_it(len(demands))}, judge it in that program "
                f"(linkcheck verify <program> --dlopen {path}), or, when nobody knows that program, say so in the "
                f'policy:\n    host-symbols = ["{symbol}"]'
            )
        if is_opened(self.load_set.chain(index)[0], self.load_set) and is_stripped(self.load_set.root):
            way = "\n".join(export_lines(symbol))
            return (
                f"{link}\nor, when {self.load_set.root.path} defines {_it(len(demands))} and does not export "
                f"{_it(len(demands))}:\n{way}"
            )
        return link

    def _find_unexported(self, index: int, demands: Sequence[Demand]) -> Unexported | None:
        """Who defines some of `demands` for itself alone; what is exported by nobody answers to no version."""
        from linkcheck.rules.unexported_definition import find_unexported

        return find_unexported(self.load_set, index, unique(name for name, version, _ in demands if version is None))

    def _tell_unexported(self, found: Unexported | None, demands: Sequence[Demand]) -> str:
        if found is None:
            return ""
        names = self._name([demand for demand in demands if demand[0] in found.names])
        return f" {found.image.path} defines {names} (.symtab), but does not export {_it(len(found.names))}."

    def _name(self, demands: Sequence[Demand]) -> str:
        """The first of the symbols, and how many more there are; those of the policy as other rules call them."""
        texts = [self._name_one(demand) for demand in demands[:_MOST_NAMED]]
        more = len(demands) - len(texts)
        return listed(texts) if not more else f"{', '.join(texts)} and {counted(more, 'more symbol')}"

    def _name_one(self, demand: Demand) -> str:
        name, version, _ = demand
        called = name_any_symbol(name, self.settings)
        return called if version is None else f"{called}@{one_line(version)}"


def _it(count: int) -> str:
    return "it" if count == 1 else "them"


def _counted(count: int) -> str:
    return f"{counted(count, 'undefined symbol')} {'is' if count == 1 else 'are'}"


def _text(demand: Demand) -> str:
    name, version, _ = demand
    return one_line(name if version is None else f"{name}@{version}")


RULE = Rule(META, __doc__ or "", check_load_set=check)
