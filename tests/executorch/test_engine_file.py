"""Engines brought into files: what is copied, what is hashed, what is refused."""

from __future__ import annotations

import array
import hashlib
from pathlib import Path

import pytest

from linkcheck.executorch.engine_file import stage_engine

ENGINE = bytes(range(256)) * 8192  # two blocks of the reader


def test_a_plan_file_is_used_where_it_is(tmp_path: Path) -> None:
    plan = tmp_path / "model.plan"
    plan.write_bytes(ENGINE)
    for source in (plan, str(plan)):
        engine = stage_engine(source, str(tmp_path))
        assert (engine.path, engine.size, engine.is_copy) == (str(plan), len(ENGINE), False)
        assert engine.key == f"tensorrt_engine_{hashlib.sha256(ENGINE).hexdigest()}"
    assert list(tmp_path.iterdir()) == [plan]


@pytest.mark.parametrize("source", [ENGINE, bytearray(ENGINE), memoryview(ENGINE), array.array("I", ENGINE)])
def test_a_buffer_becomes_a_file(tmp_path: Path, source: object) -> None:
    engine = stage_engine(source, str(tmp_path))
    assert engine.is_copy
    assert Path(engine.path).parent == tmp_path
    assert Path(engine.path).read_bytes() == ENGINE
    assert engine.sha256 == hashlib.sha256(ENGINE).digest()


def test_an_engine_without_bytes_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.plan").touch()
    for source in (tmp_path / "empty.plan", b""):
        with pytest.raises(ValueError, match="an engine without bytes"):
            stage_engine(source, str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["empty.plan"]


def test_what_is_no_engine_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        stage_engine(7)
    with pytest.raises(FileNotFoundError):
        stage_engine(tmp_path / "missing.plan")


def test_nothing_is_left_of_a_copy_that_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def __enter__(self) -> Full:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def write(self, _: object) -> None:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("builtins.open", lambda *_, **__: Full())
    with pytest.raises(OSError, match="No space left"):
        stage_engine(ENGINE, str(tmp_path))
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []
