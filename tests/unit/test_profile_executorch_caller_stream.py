"""The built-in profile: the C++ runtime's demangler judges its names, real SONAMEs its patterns."""

from __future__ import annotations

import subprocess
import sys
from fnmatch import fnmatchcase

import pytest

from linkcheck.policy.demangle import make_demangler
from linkcheck.policy.load import load_settings, profile_names
from linkcheck.policy.symbols import normalise

SETTINGS = load_settings(rule_codes=("LC101",), profile="executorch-caller-stream", discover=False)
STATES = {state.name: state for state in SETTINGS.states}
ROLES = {role.name: role for role in SETTINGS.roles}
ACCESSOR = "_ZN10executorch9extension4cuda15getCallerStreamEv"


def test_it_is_there_and_named_in_reports() -> None:
    assert "executorch-caller-stream" in profile_names()
    assert SETTINGS.profile == "executorch-caller-stream"


@pytest.mark.parametrize(("name", "mangled"), [(n, m) for n, ms in SETTINGS.mangled_names.items() for m in ms])
def test_each_mangled_name_is_the_name_it_stands_for(name: str, mangled: str) -> None:
    demangled = make_demangler()(mangled)
    assert demangled is not None
    assert normalise(demangled) == normalise(name)


def test_no_symbol_is_left_for_the_demangler() -> None:
    specs = [spec for state in SETTINGS.states for spec in state.symbols]
    for role in SETTINGS.roles:
        specs += [*role.when_import, *role.import_, *role.forbid_import, *role.export, *role.forbid_export]
    assert len(specs) >= 12
    assert all(spec.mangled for spec in specs)


def test_constructors_and_destructors_count_in_both_forms() -> None:
    forms = [len(spec.mangled) for spec in STATES["caller stream"].symbols]
    assert forms == [1, 2, 2]


@pytest.mark.parametrize(
    ("soname", "owner"),
    [
        ("libextension_cuda.so", True),
        ("libextension_cuda.so.1", True),
        ("libexecutorch_extension_cuda.so", True),
        ("libexecutorch_extension_cuda.so.1.5", True),
        ("libextension_cuda.so.bak", False),
        ("libextension_cuda_static.so", False),
        ("libmy_extension_cuda.so", False),
    ],
)
def test_owners_of_the_caller_stream(soname: str, owner: bool) -> None:
    for patterns in (STATES["caller stream"].owner, ROLES["runner"].need, ROLES["cuda-delegate"].need):
        assert any(fnmatchcase(soname, pattern) for pattern in patterns) is owner


def test_the_caller_stream_is_judged_everywhere_and_the_registries_only_beside_the_shared_runtime() -> None:
    caller_stream, *registries = SETTINGS.states
    assert caller_stream.thread_local
    assert not caller_stream.only_with_owner
    assert len(registries) == 3
    for state in registries:
        assert state.only_with_owner
        assert not state.thread_local
        for soname, owner in (("libexecutorch.so", True), ("libexecutorch_backend_xnnpack.so", False)):
            assert any(fnmatchcase(soname, pattern) for pattern in state.owner) is owner


def test_libraries_may_need_libtorch_and_executables_may_not() -> None:
    assert ROLES["runner"].kind == "executable"
    assert any(fnmatchcase("libtorch_cpu.so", pattern) for pattern in ROLES["runner"].forbid_need)
    assert any(fnmatchcase("libc10_cuda.so", pattern) for pattern in ROLES["runner"].forbid_need)
    assert not any(fnmatchcase("libc.so.6", pattern) for pattern in ROLES["runner"].forbid_need)
    for name in ("caller-stream-consumer", "cuda-delegate"):
        assert ROLES[name].kind == "library"
        assert ROLES[name].forbid_need == ()
        assert [spec.mangled for spec in ROLES[name].import_] == [(ACCESSOR,)]


def test_loading_it_imports_nothing_that_only_errors_and_patterns_want() -> None:
    program = (
        "import sys; from linkcheck.policy.load import load_settings; "
        "load_settings(rule_codes=('LC101',), discover=False); print(*sys.modules)"
    )
    loaded = set(subprocess.check_output([sys.executable, "-c", program], text=True).split())
    assert "linkcheck.policy.load" in loaded
    assert not loaded & {
        "lief",
        "ctypes",
        "difflib",
        "hashlib",
        "linkcheck.policy.lines",
        "linkcheck.policy.demangle",
    }
