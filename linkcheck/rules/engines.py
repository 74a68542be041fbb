"""What the rules about TensorRT engines in ExecuTorch files ask and say alike. It is no rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcheck.model import Check, Outcome
from linkcheck.rules.wording import shorten
from linkcheck.text import one_line

if TYPE_CHECKING:
    from linkcheck.executorch.facts import Delegate, Engine, Place, ProgramFile, ProgramSet

#: How an engine that several delegates share is exported.
SHARED_ENGINE = (
    "Export the engine as named data under the key tensorrt_engine_<SHA-256 of its bytes>, and let each blob name that "
    "key (linkcheck.executorch.blob.serialize with engine_key)."
)


def skip_program(code: str, program: ProgramFile, what: str) -> Check:
    """The check of a file in which there is no `what` to look at."""
    return Check(code, program.path, Outcome.NOT_APPLICABLE, f"the file has no {what}")


def name_delegate(delegate: Delegate) -> str:
    """Such as "forward.delegates[0] of model.pte"."""
    return f"{one_line(delegate.name)} of {delegate.path}"


def name_place(place: Place) -> str:
    """Such as "4096 bytes at 0x1000 of model.pte"."""
    return f"{place} of {place.path}"


def name_engine(engine: Engine) -> str:
    """How a sentence about `engine` begins: "The engine " and its key, or "The engine of forward.delegates[0]"."""
    name = one_line(engine.name)
    return f"The engine {name}" if engine.keys else f"{name[:1].upper()}{name[1:]}"


def name_users(engine: Engine) -> str:
    """Such as "used by forward.delegates[0] and decode.delegates[0]"."""
    if not engine.users:
        return "used by no delegate"
    return f"used by {' and '.join(shorten([one_line(user.name) for user in engine.users]))}"


def digest_in(key: str) -> str | None:
    """The SHA-256 that an engine's `key` says its bytes have; None when it says none."""
    from linkcheck.executorch.blob import KEY_PREFIX

    digest = key.removeprefix(KEY_PREFIX)
    return digest if digest != key and len(digest) == 64 and not digest.strip("0123456789abcdef") else None


def subject_of(delegate: Delegate) -> str:
    """The subject of a check of one delegate."""
    return f"{delegate.path}: {delegate.name}"


def engines_of(program: ProgramFile, programs: ProgramSet) -> tuple[Engine, ...]:
    """The engines that are in the file or, for a program, in the data files that serve it."""
    paths = {program.path, *(file.path for file in programs.files if file.is_data)}
    return tuple(engine for engine in programs.engines if engine.place.path in paths)


def unread_blobs(program: ProgramFile) -> tuple[Delegate, ...]:
    """The TensorRT delegates whose blob could not be read. Why not is LC705's to say."""
    return tuple(delegate for delegate in program.tensorrt_delegates if delegate.blob is None)


def note_unread_blob(code: str, delegate: Delegate) -> Check:
    """The check of a delegate about which nothing can be said without its blob."""
    reason = "its blob could not be read (LC705), so where its engine is was not seen"
    return Check(code, subject_of(delegate), Outcome.UNKNOWN, reason)
