"""How much of a program the reader looks at before it gives up; numbers only.

Together they keep the cost of a hostile file under one second and 64 MiB. A program of a large language model with
thousands of operators stays an order of magnitude below them.
"""

from __future__ import annotations

#: Bytes of one read of the flatbuffer, and how many of such blocks are kept. Bounds block_file.py.
BLOCK_SIZE = 1 << 16
MAX_BLOCKS = 64

#: Bytes of one read of an engine that is hashed.
HASH_BLOCK_SIZE = 1 << 20

#: Tables and strings of a flatbuffer that are visited. Tables may be shared, so a small file can describe very many.
#: Bounds flatbuffer.py.
MAX_TABLES = 1 << 16

#: Instructions that are looked at for calls of delegates, in all methods together. With more, what the later ones
#: call is not known; only shapes depend on it. Bounds program.py.
MAX_INSTRUCTIONS = 1 << 15

#: Delegates of all methods, and how many of them may be TensorRT's, which have engines. A model whose operators are
#: delegated one by one has a thousand. Each has its lines in the report, so that they bound its size, too. Bounds
#: program.py.
MAX_DELEGATES = 1 << 12
MAX_TENSORRT_DELEGATES = 1 << 10

#: Entries of a file's named data, and how many of them may be called like engines. Bounds program.py.
MAX_NAMED_DATA = 1 << 14
MAX_NAMED_ENGINES = 1 << 10

#: Bytes of a name: a method, a backend, a key. Bounds flatbuffer.py.
MAX_NAME_LENGTH = 1 << 16

#: Numbers of one vector that are read: the dimensions of a tensor, the arguments of a call. Bounds flatbuffer.py.
MAX_NUMBERS = 1 << 16

#: Bytes of one blob's metadata (an engine has about a hundred for each input and output), of all of them in a file,
#: and of their brackets and commas, each of which becomes an object when it is parsed. Bounds program.py.
MAX_METADATA_SIZE = 2 << 20
MAX_ALL_METADATA = 16 << 20
MAX_METADATA_MARKS = 1 << 17

#: Bytes of one of the stretches by which engines are told apart that are not hashed.
SAMPLE_SIZE = 4096
