"""A compressed stream -> a stream of its bytes, with bounded memory. It knows no archive format."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, BinaryIO, Protocol, cast

from linkcheck.errors import ArchiveError
from linkcheck.inputs.limits import BLOCK, MAX_DECODER_MEMORY

if TYPE_CHECKING:
    from collections.abc import Callable

#: First bytes -> what is behind them (RFC 1952; bzip2; xz file format 1.2; RFC 8878).
MAGICS = (
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\0", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
)
#: How zstd support is had where Python has none.
ZSTD_HINT = "it is zstd-compressed, and this Python cannot read that; pip install 'linkcheck-elf[zstd]'"


def name_compression(head: bytes) -> str | None:
    """The compression whose magic `head` begins with, or None."""
    return next((name for magic, name in MAGICS if head.startswith(magic)), None)


def open_decompressed(stream: BinaryIO, compression: str | None, archive: str) -> BinaryIO:
    """The bytes behind `stream`, which is compressed as `compression` says (None: not at all).

    Reading raises OSError, EOFError, zlib.error or lzma.LZMAError for broken data (see BROKEN_DATA). Raises
    ArchiveError, which names `archive`, when zstd is not supported here.
    """
    if compression is None:
        return stream
    if compression == "gzip":
        import gzip

        return cast("BinaryIO", gzip.GzipFile(fileobj=stream))
    if compression == "bzip2":
        import bz2

        return cast("BinaryIO", bz2.BZ2File(stream))
    if compression == "xz":
        import lzma

        def make() -> _Decoder:
            return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_DECODER_MEMORY)

        return _Frames.open(stream, make)
    return _open_zstd(stream, archive)


def broken_data() -> tuple[type[Exception], ...]:
    """What reading broken data raises; a function, because the modules are imported only where used."""
    import lzma
    import zlib

    return (OSError, EOFError, zlib.error, lzma.LZMAError, _BrokenFrameError)


def _open_zstd(stream: BinaryIO, archive: str) -> BinaryIO:
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]  # Python 3.14

        limits = {zstd.DecompressionParameter.window_log_max: MAX_DECODER_MEMORY.bit_length() - 1}
        return _Frames.open(stream, lambda: cast("_Decoder", zstd.ZstdDecompressor(options=limits)), zstd.ZstdError)
    except ImportError:
        pass
    try:
        import zstandard
    except ImportError:
        raise ArchiveError(archive, ZSTD_HINT) from None
    decoder = zstandard.ZstdDecompressor(max_window_size=MAX_DECODER_MEMORY)
    return _Translated.open(decoder.stream_reader(stream, read_across_frames=True), zstandard.ZstdError)


class _BrokenFrameError(Exception):
    """A zstd decoder's own error under a name that needs no import."""


class _Decoder(Protocol):
    """What bz2, lzma and Python 3.14's zstd have in common."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class _Frames(io.RawIOBase):
    """The bytes of one compressed frame after the other, to the end of the stream."""

    def __init__(self, stream: BinaryIO, make: Callable[[], _Decoder], error: type[Exception]) -> None:
        self._stream = stream
        self._make = make
        self._error = error
        self._decoder = make()
        self._pending = b""
        self._started = False

    @classmethod
    def open(
        cls, stream: BinaryIO, make: Callable[[], _Decoder], error: type[Exception] = _BrokenFrameError
    ) -> BinaryIO:
        return cast("BinaryIO", io.BufferedReader(cls(stream, make, error), BLOCK))

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while True:
            if self._decoder.eof:
                self._pending = self._decoder.unused_data or self._stream.read(BLOCK)
                # Frames may be followed by padding of zeros (xz file format, "Stream Padding").
                while self._pending and not self._pending.strip(b"\0"):
                    self._pending = self._stream.read(BLOCK)
                if not self._pending:
                    return 0
                self._pending = self._pending.lstrip(b"\0")
                self._decoder = self._make()
            elif self._decoder.needs_input and not self._pending:
                self._pending = self._stream.read(BLOCK)
                if not self._pending:
                    raise EOFError("the compressed data ends early")
            try:
                data = self._decoder.decompress(self._pending, len(buffer))
            except self._error as error:
                raise _BrokenFrameError(str(error)) from error
            self._pending = b""
            if data:
                buffer[: len(data)] = data
                return len(data)


class _Translated(io.RawIOBase):
    """A stream whose decoder's errors get a name that needs no import."""

    def __init__(self, stream: BinaryIO, error: type[Exception]) -> None:
        self._stream = stream
        self._error = error

    @classmethod
    def open(cls, stream: BinaryIO, error: type[Exception]) -> BinaryIO:
        return cast("BinaryIO", io.BufferedReader(cls(stream, error), BLOCK))

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        try:
            data = self._stream.read(len(buffer))
        except self._error as error:
            raise _BrokenFrameError(str(error)) from error
        buffer[: len(data)] = data
        return len(data)
