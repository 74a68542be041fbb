"""How much of a program the reader looks at before it gives up; numbers only.

Together they bound what a hostile file costs (docs/performance.md, "Checking programs") and keep the report on it
readable by a machine. A program of ten thousand methods, or of ten thousand delegates, stays below all of them.
"""

from __future__ import annotations

#: Bytes of one read of the flatbuffer, how many of such blocks are kept, and how many are read in all: a file may lead
#: back and forth between places that are gigabytes apart. Bounds block_file.py.
BLOCK_SIZE = 1 << 14
MAX_BLOCKS = 256
MAX_BLOCK_READS = 1 << 15

#: Bytes of one read of an engine that is hashed.
HASH_BLOCK_SIZE = 1 << 20

#: Tables of a flatbuffer that are visited, each as often as something leads to it: tables may be shared, so a small
#: file can describe very many. A method with one delegate and its call takes about fourteen. And how many of their
#: vtables are kept, of which real files have some dozen. Bounds flatbuffer.py.
MAX_TABLES = 3 << 16
MAX_VTABLES = 1 << 12

#: Bytes of all names that are decoded, each once, and sixteen for each number of a list. Ten thousand methods with
#: names of a hundred bytes take one megabyte. Bounds flatbuffer.py.
MAX_DECODED = 4 << 20

#: Bytes of a name: a method, a backend, a key. A name in a weight file is a path through a model's modules. Bounds
#: flatbuffer.py.
MAX_NAME_LENGTH = 1 << 12

#: Instructions that are looked at for calls of delegates, in all methods together. With more, what the later ones
#: call is not known; only shapes depend on it. Bounds program.py.
MAX_INSTRUCTIONS = 1 << 15

#: Methods, delegates of all methods, segments, and entries of a file's named data. A model whose operators are
#: delegated one by one has a thousand delegates, and one of a thousand experts some thousand weights. Bounds
#: program.py and container.py.
MAX_METHODS = 3 << 12
MAX_DELEGATES = 3 << 12
MAX_SEGMENTS = 1 << 15
MAX_NAMED_DATA = 1 << 14

#: Different backends that delegates are for. ExecuTorch's runtime registers 16 at most. Bounds program.py, and with it
#: the search of `verify` for their ids.
MAX_BACKENDS = 64

#: Characters of what a report lists of one file, about: a name that stands in the file once may be the name of ten
#: thousand things, and each is listed. Ten thousand delegates with two tensors each take a third. Bounds listing.py.
MAX_LISTED = 24 << 20

#: Bytes of one blob's metadata (an engine has about a hundred for each input and output), of all of them in a file,
#: and of their brackets and commas, each of which becomes an object when it is parsed. Bounds program.py.
MAX_METADATA_SIZE = 2 << 20
MAX_ALL_METADATA = 8 << 20
MAX_METADATA_MARKS = 1 << 16
MAX_ALL_METADATA_MARKS = 1 << 18

#: Characters of what is said about a blob's fault: it quotes the blob.
MAX_REASON = 300

#: Bytes of one of the stretches by which engines are told apart that are not hashed.
SAMPLE_SIZE = 4096
