"""How much of an archive is unpacked before it counts as hostile; numbers only.

The largest wheel of the package index's big projects holds about 15,000 members and inflates to 6 GiB, 2 to 10 times
its size; a distribution's largest .deb to 3 GiB.
"""

from __future__ import annotations

#: Members of one archive.
MAX_MEMBERS = 1 << 18

#: Bytes of a zip's central directory, which is read as a whole: a quarter of a million entries fit.
MAX_ZIP_DIRECTORY = 32 << 20

#: Bytes that one archive may inflate to, and how many times its own size, once it is past what a small archive of
#: zeros may do.
MAX_INFLATED = 32 << 30
MAX_RATIO = 200
RATIO_FREE_OF_CHARGE = 64 << 20

#: Bytes of one extended tar header: a name or a link target with PATH_MAX is 4 KiB.
MAX_TAR_HEADER = 1 << 20

#: Bytes of memory that an xz or zstd stream may ask for; `xz -9` asks for 65 MiB, `zstd --ultra -22` for 128 MiB.
MAX_DECODER_MEMORY = 256 << 20

#: Bytes of a member's name, and of a link's target (Linux: PATH_MAX).
MAX_NAME = 4096

#: Directories above a member: what makes and removes directories goes down one by one, and Python stops at a thousand.
MAX_DEPTH = 256

#: Bytes read or written at a time.
BLOCK = 1 << 20
