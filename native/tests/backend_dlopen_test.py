"""Opens the shared backend in Python with nothing else loaded and looks into the wheel's registry.

backend_dlopen_test.py LIBEXECUTORCH BACKEND
"""

from __future__ import annotations

import ctypes
import sys
import unittest

LIBEXECUTORCH = ""
BACKEND = ""

# executorch::runtime::get_num_registered_backends() and get_backend_class(char const*), Itanium mangling.
COUNT = "_ZN10executorch7runtime27get_num_registered_backendsEv"
FIND = "_ZN10executorch7runtime17get_backend_classEPKc"


class BackendDlopenTest(unittest.TestCase):
    def test_it_registers_itself_into_the_one_registry(self) -> None:
        runtime = ctypes.CDLL(LIBEXECUTORCH)
        count = runtime[COUNT]
        count.restype = ctypes.c_size_t
        find = runtime[FIND]
        find.restype = ctypes.c_void_p
        before = count()
        self.assertIsNone(find(b"TensorRTBackend"))
        ctypes.CDLL(BACKEND)  # RTLD_LOCAL, as every Python extension
        self.assertEqual(count(), before + 1)
        self.assertIsNotNone(find(b"TensorRTBackend"))
        ctypes.CDLL(BACKEND)
        self.assertEqual(count(), before + 1)


if __name__ == "__main__":
    LIBEXECUTORCH, BACKEND = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
