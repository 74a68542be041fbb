"""What ExecuTorch files hold, before the report about them: as text, as a Markdown table, as JSON. Judges nothing.

JSON is described by schemas/pte-1.json. The other formats have no place for an inventory, and are those of `verify`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.report import render
from linkcheck.report.printable import defuse_commands, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from linkcheck.executorch.facts import Argument, Delegate, Engine, Place, ProgramFile, ProgramSet
    from linkcheck.report.report import DescribedRule, Report

#: A change that an old reader would misread makes this the next number, with a schema file of its own.
SCHEMA = "linkcheck/pte/1"
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
    if format_name == "json":
        from linkcheck.report.json_document import describe_report, dump_json

        return dump_json({**describe_report(report), **describe_programs(programs), "schema": SCHEMA})
    text = render(report, format_name, color=color, rules=rules)
    if format_name == "text":
        return "".join(f"{defuse_commands(line)}\n" for line in _list_lines(programs)) + text
    if format_name == "markdown":
        from linkcheck.report.markdown import render_table

        return text + render_table("Engines", _HEADS, [_row(engine) for engine in programs.engines])
    return text


# ---------------------------------------------------------------- text


def _list_lines(programs: ProgramSet) -> Iterator[str]:
    for file in programs.files:
        methods = f", methods {', '.join(map(printable, file.methods))}" if file.methods else ""
        yield f"{printable(file.path)}: ExecuTorch {file.kind.value}, {file.size} bytes{methods}"
        for delegate in file.delegates:
            yield from _list_delegate(delegate)
        if file.named_data:
            engines = sum(entry.is_engine for entry in file.named_data)
            yield f"  named data: {_count(len(file.named_data), 'entry', 'entries')}, {engines} of them engines"
    for engine in programs.engines:
        yield f"{printable(engine.name)}"
        yield f"  {', '.join(_describe_engine(engine))}"
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
    for binding, argument in zip(metadata.io_bindings, match_arguments(delegate), strict=True):
        direction = "in " if binding.is_input else "out"
        alias = aliases.get(binding.name)
        updates = "" if alias is None else f", is {printable(alias.input)} updated in place ({printable(alias.kind)})"
        yield f"    {direction} {printable(binding.name)}: {_describe_argument(argument)}{updates}"


def match_arguments(delegate: Delegate) -> tuple[Argument | None, ...]:
    """For each binding of the blob the tensor that the method gives for it; None when that is not known."""
    count = 0 if delegate.blob is None else len(delegate.blob.metadata.io_bindings)
    return delegate.arguments if len(delegate.arguments) == count else (None,) * count


def _describe_argument(argument: Argument | None) -> str:
    if argument is None:
        return _UNSEEN
    shape = ", ".join(f"<={size}" if argument.dynamic else str(size) for size in argument.shape)
    return f"{argument.dtype}[{shape}]" + ("" if argument.device == "cpu" else f" on {argument.device}")


def _describe_engine(engine: Engine) -> Iterator[str]:
    yield f"{engine.place} of {printable(engine.place.path)}"
    yield f"aligned to {engine.place.alignment}"
    yield engine.plan or "no plan that we know"
    yield f"sha256 {engine.digest}" if engine.digest is not None else "not hashed"
    yield from (f"also called {printable(key)}" for key in engine.keys[1:])
    users = " and ".join(printable(user.name) for user in engine.users)
    yield f"used by {users}" if users else "used by no delegate"


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
        ", ".join(user.name for user in engine.users),
    )


# ---------------------------------------------------------------- JSON


def describe_programs(programs: ProgramSet) -> dict[str, object]:
    """The values of the JSON document that the report does not have."""
    return {
        "programs": [_describe_file(file) for file in programs.files],
        "engines": [
            {
                "keys": list(engine.keys),
                "path": engine.place.path,
                **_describe_place(engine.place),
                "alignment": engine.place.alignment,
                "plan": engine.plan or None,
                "sha256": engine.digest,
                "used_by": [
                    {"path": user.path, "method": user.method, "delegate": user.index} for user in engine.users
                ],
            }
            for engine in programs.engines
        ],
    }


def _describe_file(file: ProgramFile) -> dict[str, object]:
    return {
        "path": file.path,
        "kind": file.kind.value,
        "size": file.size,
        "methods": list(file.methods),
        "delegates": [_describe_delegate(delegate) for delegate in file.delegates],
        "named_data": [{"key": entry.key, **_describe_place(entry.place)} for entry in file.named_data],
    }


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
