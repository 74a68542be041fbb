"""What `linkcheck.executorch` says where the extra `executorch` is not installed. Imports neither it nor torch."""

from __future__ import annotations

import subprocess
import sys


def test_without_the_extra_one_error_says_how_to_install_it() -> None:
    program = (
        "import sys; sys.modules['executorch'] = None  # as if it were not installed\n"
        "from linkcheck.executorch import TensorRTPartitioner\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr.count("Traceback") == 1
    assert done.stderr.splitlines()[-1] == (
        "ImportError: linkcheck.executorch.TensorRTPartitioner needs ExecuTorch and torch: "
        "pip install 'linkcheck-elf[executorch]'"
    )
