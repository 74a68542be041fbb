from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkcheck.elf.hashes import find_largest
from linkcheck.elf.layout import ByteOrder, find_layout

_NUMBERS = st.one_of(
    st.just(0), st.integers(0, 0xFF), st.integers(0, 0xFFFF), st.integers(0, 0xFFFFFF), st.integers(0, 0xFFFFFFFF)
)


@pytest.mark.parametrize("order", ["little", "big"])
@given(numbers=st.lists(_NUMBERS, max_size=40))
def test_the_largest_word_is_that_of_max(order: ByteOrder, numbers: list[int]) -> None:
    raw = struct.pack(f"{'<' if order == 'little' else '>'}{len(numbers)}I", *numbers)
    assert find_largest(raw, find_layout(64, order)) == max(numbers, default=0)
