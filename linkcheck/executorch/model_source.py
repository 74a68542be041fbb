"""What `linkcheck pte build` builds from: a function that makes torch modules, or ONNX files. Builds nothing itself."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from linkcheck.errors import ModelError, UsageProblemError
from linkcheck.value import Value

if TYPE_CHECKING:
    from collections.abc import Sequence

#: What code of others raises when it goes wrong: torch's own errors derive from RuntimeError, or are these.
FAILURES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    NameError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
)
_DEFAULT_METHOD = "forward"


class Source(Value):
    """One method to build. `shown` is what the user called it."""

    method: str
    shown: str
    #: An ONNX file, or None; then `module` is a torch module, and `example` its arguments, which are tensors.
    onnx: str | None = None
    module: Any = None
    example: tuple[Any, ...] = ()


def read_sources(models: Sequence[str]) -> tuple[Source, ...]:
    """The methods that `models` stand for: each `[METHOD=]FILE.onnx` or `[METHOD=]FILE.py:FUNCTION`.

    The function is called without arguments, and gives a module and its example arguments, or a mapping from methods to
    such pairs. Raises UsageProblemError for what is none of these, and ModelError for a file that cannot be used.
    """
    sources: dict[str, Source] = {}
    for model in models:
        for source in _read(model):
            if source.method in sources:
                known = sources[source.method].shown
                raise UsageProblemError(
                    f"{model}: the method {source.method} is {known} already; METHOD={model} names it"
                )
            sources[source.method] = source
    return tuple(sources.values())


def _read(model: str) -> list[Source]:
    method, _, rest = model.rpartition("=")
    if method and not method.isidentifier():  # a path with such a sign in it
        method, rest = "", model
    path, _, function = rest.rpartition(":")
    if path.endswith(".py") and function.isidentifier():
        return _call(path, function, method, model)
    if rest.endswith(".onnx"):
        if not os.path.isfile(rest):
            raise ModelError(rest, "there is no such file")
        return [Source(method or _DEFAULT_METHOD, rest, rest)]
    raise UsageProblemError(f"{model}: neither FILE.onnx nor FILE.py:FUNCTION")


def _call(path: str, function: str, method: str, shown: str) -> list[Source]:
    spec = importlib.util.spec_from_file_location("linkcheck_model", path)
    if spec is None or spec.loader is None or not os.path.isfile(path):
        raise ModelError(path, "there is no such file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where what it defines says that it is from
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))  # as for a script, whose neighbours it may import
    try:
        spec.loader.exec_module(module)
        made = getattr(module, function)()
    except FAILURES as error:
        raise ModelError(shown, f"{type(error).__name__}: {error}") from error
    finally:
        sys.path.pop(0)
    pairs = made if isinstance(made, Mapping) else {method or _DEFAULT_METHOD: made}
    if method and isinstance(made, Mapping):
        raise UsageProblemError(f"{shown}: {function} names its methods itself ({', '.join(map(str, made))})")
    return [_check(str(name), pair, shown) for name, pair in pairs.items()]


def _check(method: str, pair: Any, shown: str) -> Source:
    import torch

    if not isinstance(pair, tuple) or len(pair) != 2 or not isinstance(pair[0], torch.nn.Module):
        raise ModelError(shown, f"{method} is no pair of a torch.nn.Module and its example arguments, but {type(pair)}")
    module, example = pair
    example = (example,) if isinstance(example, torch.Tensor) else tuple(example)
    if not all(isinstance(one, torch.Tensor) for one in example):
        raise ModelError(shown, f"{method}: an example argument is no tensor, and an engine takes nothing else")
    return Source(method, shown, None, module, example)
