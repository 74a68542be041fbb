"""What ExecuTorch files hold, before the report about them: as text, as a Markdown table, as JSON. Judges nothing.

JSON is described by schemas/pte-1.json. The other formats have no place for an inventory, and are those of `verify`.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from linkcheck.report import render
from linkcheck.report.printable import defuse_commands, printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from linkcheck.executorch.facts import Argument, Delegate, Engine, NamedData, Place, ProgramFile, ProgramSet
    from linkcheck.report.report import DescribedRule, Report

#: A change that an old reader would misread makes this the next number, with a schema file of its own.
SCHEMA = "linkcheck/pte/1"
#: Delegates of a file, bindings of a delegate, and engines that text lists; and names in one of its lines.
MOST_LISTED = 200
MOST_JOINED = 20
#: What an argument is called whose tensor was not seen.
_UNSEEN = "?"


def render_programs(
    report: Report,
    programs: ProgramSet,
    format_name: str,
    *,
    color: bool = False,
    rules: Sequence[DescribedRule] = (),
) -> str:
    """`report` in one of `report.FORMATS`, with what `programs` hold where the format has room for it."""
    return "".join(stream_programs(report, programs, format_name, color=color, rules=rules))


def stream_programs(
    report: Report,
    programs: ProgramSet,
    format_name: str,
    *,
    color: bool = False,
    rules: Sequence[DescribedRule] = (),
) -> Iterator[str]:
    """As `render_programs`, a piece at a time."""
    if format_name == "json":
        from linkcheck.report.json_document import describe_report, stream_json

        yield from stream_json({**describe_report(report), **describe_programs(programs), "schema": SCHEMA})
        return
    if format_name == "text":
        yield from (f"{defuse_commands(line)}\n" for line in _list_lines(programs))
    yield render(report, format_name, color=color, rules=rules)
    if format_name == "markdown":
        from linkcheck.report.markdown import render_table

        yield render_table("Engines", _HEADS, [_row(engine) for engine in programs.engines[:MOST_LISTED]])
        if len(programs.engines) > MOST_LISTED:
            yield f"\n{_tell_more(len(programs.engines), MOST_LISTED, 'engines')}\n"


# ---------------------------------------------------------------- text


def _list_lines(programs: ProgramSet) -> Iterator[str]:
    for file in programs.files:
        methods = f", methods {_join(', ', map(printable, file.methods), len(file.methods))}" if file.methods else ""
        yield f"{printable(file.path)}: ExecuTorch {file.kind.value}, {file.size} bytes{methods}"
        for delegate in file.delegates[:MOST_LISTED]:
            yield from _list_delegate(delegate)
        if len(file.delegates) > MOST_LISTED:
            yield f"  {_tell_more(len(file.delegates), MOST_LISTED, 'delegates')}"
        if file.named_data:
            engines = sum(entry.is_engine for entry in file.named_data)
            yield f"  named data: {_count(len(file.named_data), 'entry', 'entries')}, {engines} of them engines"
    for engine in programs.engines[:MOST_LISTED]:
        yield f"{printable(engine.name)}"
        yield f"  {', '.join(_describe_engine(engine))}"
    if len(programs.engines) > MOST_LISTED:
        yield _tell_more(len(programs.engines), MOST_LISTED, "engines")
    if programs.files:
        yield ""


def _list_delegate(delegate: Delegate) -> Iterator[str]:
    head = f"  {printable(delegate.name)}: {printable(delegate.backend)}, {delegate.place}"
    if delegate.blob is None:
        yield head if delegate.fault is None else f"{head}, unreadable"
        return
    metadata = delegate.blob.metadata
    facts = [f"device cuda:{metadata.device_id}"]
    facts += ["hardware compatible"] if metadata.hardware_compatible else []
    facts += [f"for {printable(metadata.target_platform)}"] if metadata.target_platform else []
    facts += ["engine in the blob"] if delegate.blob.inline is not None else []
    facts += [f"engine {printable(metadata.engine_key)}"] if metadata.engine_key is not None else []
    yield f"{head}, {', '.join(facts)}"
    aliases = {alias.output: alias for alias in metadata.aliased_io}
    matched = zip(metadata.io_bindings, match_arguments(delegate), strict=True)
    for binding, argument in islice(matched, MOST_LISTED):
        direction = "in " if binding.is_input else "out"
        alias = aliases.get(binding.name)
        updates = "" if alias is None else f", is {printable(alias.input)} updated in place ({printable(alias.kind)})"
        yield f"    {direction} {printable(binding.name)}: {_describe_argument(argument)}{updates}"
    if len(metadata.io_bindings) > MOST_LISTED:
        yield f"    {_tell_more(len(metadata.io_bindings), MOST_LISTED, 'inputs and outputs')}"


def match_arguments(delegate: Delegate) -> tuple[Argument | None, ...]:
    """For each binding of the blob the tensor that the method gives for it; None when that is not known."""
    count = 0 if delegate.blob is None else len(delegate.blob.metadata.io_bindings)
    return delegate.arguments if len(delegate.arguments) == count else (None,) * count


def _describe_argument(argument: Argument | None) -> str:
    if argument is None:
        return _UNSEEN
    sizes = (f"<={size}" if argument.dynamic else str(size) for size in argument.shape)
    shape = _join(", ", sizes, len(argument.shape))
    return f"{argument.dtype}[{shape}]" + ("" if argument.device == "cpu" else f" on {argument.device}")


def _describe_engine(engine: Engine) -> Iterator[str]:
    yield f"{engine.place} of {printable(engine.place.path)}"
    yield f"aligned to {engine.place.alignment}"
    yield engine.plan or "no plan that we know"
    yield f"sha256 {engine.digest}" if engine.digest is not None else "not hashed"
    yield from (f"also called {printable(key)}" for key in engine.keys[1:MOST_JOINED])
    if len(engine.keys) > MOST_JOINED:
        yield _tell_more(len(engine.keys), MOST_JOINED, "keys")
    users = _join(" and ", (printable(user.name) for user in engine.users), len(engine.users))
    yield f"used by {users}" if users else "used by no delegate"


def _join(word: str, names: Iterable[str], count: int) -> str:
    """The first MOST_JOINED of `count` names, and how many there are more."""
    shown = [*islice(names, MOST_JOINED)]
    return word.join(shown if count <= MOST_JOINED else [*shown, f"{count - MOST_JOINED} more"])


def _tell_more(count: int, listed: int, what: str) -> str:
    return f"… and {count - listed} more {what}, all of them in --format json"


def _count(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"


# ---------------------------------------------------------------- Markdown

_HEADS = ("engine", "file", "offset", "bytes", "aligned to", "plan", "sha256", "used by")


def _row(engine: Engine) -> tuple[str, ...]:
    return (
        engine.name,
        engine.place.path,
        f"{engine.place.offset:#x}",
        str(engine.place.size),
        str(engine.place.alignment),
        engine.plan,
        engine.digest or "",
        _join(", ", (user.name for user in engine.users), len(engine.users)),
    )


# ---------------------------------------------------------------- JSON


def describe_programs(programs: ProgramSet) -> dict[str, object]:
    """The values of the JSON document that the report does not have."""
    from linkcheck.report.json_document import Entries

    return {
        "programs": Entries(programs.files, _describe_file),
        "engines": Entries(programs.engines, _describe_engine_fully),
    }


def _describe_engine_fully(engine: Engine) -> dict[str, object]:
    from linkcheck.report.json_document import Entries

    return {
        "keys": list(engine.keys),
        "path": engine.place.path,
        **_describe_place(engine.place),
        "alignment": engine.place.alignment,
        "plan": engine.plan or None,
        "sha256": engine.digest,
        "used_by": Entries(engine.users, _describe_user),
    }


def _describe_user(user: Delegate) -> dict[str, object]:
    return {"path": user.path, "method": user.method, "delegate": user.index}


def _describe_file(file: ProgramFile) -> dict[str, object]:
    from linkcheck.report.json_document import Entries

    return {
        "path": file.path,
        "kind": file.kind.value,
        "size": file.size,
        "methods": list(file.methods),
        "delegates": Entries(file.delegates, _describe_delegate),
        "named_data": Entries(file.named_data, _describe_named_data),
    }


def _describe_named_data(entry: NamedData) -> dict[str, object]:
    return {"key": entry.key, **_describe_place(entry.place)}


def _describe_delegate(delegate: Delegate) -> dict[str, object]:
    blob: dict[str, object] | None = None
    if delegate.blob is not None:
        metadata = delegate.blob.metadata
        blob = {
            "engine_key": metadata.engine_key,
            "inline_engine": None if delegate.blob.inline is None else _describe_place(delegate.blob.inline),
            "device_id": metadata.device_id,
            "hardware_compatible": metadata.hardware_compatible,
            "target_platform": metadata.target_platform,
            "bindings": [
                {
                    "name": binding.name,
                    "is_input": binding.is_input,
                    "dtype": None if argument is None else argument.dtype,
                    "shape": None if argument is None else list(argument.shape),
                    "dynamic": None if argument is None else argument.dynamic,
                    "device": None if argument is None else argument.device,
                }
                for binding, argument in zip(metadata.io_bindings, match_arguments(delegate), strict=True)
            ],
            "aliases": [{"output": a.output, "input": a.input, "kind": a.kind} for a in metadata.aliased_io],
        }
    return {
        "method": delegate.method,
        "index": delegate.index,
        "backend": delegate.backend,
        **_describe_place(delegate.place),
        "blob": blob,
    }


def _describe_place(place: Place) -> dict[str, object]:
    return {"offset": place.offset, "size": place.size}
