"""How much of a file the reader looks at before it gives up; numbers only.

Together they keep the cost of a hostile file under one second and 64 MiB. Each lies far above what linkers make: the
largest table met so far is libtensorflow_cc.so's (446,019 dynamic symbols with 82 MB of names).
"""

from __future__ import annotations

#: Bytes read when a file is opened: the ELF header and, in nearly every file, the program headers and notes.
HEAD_SIZE = 4096

#: Bytes of one read of a table that is walked from end to end.
BLOCK_SIZE = 1 << 20

#: Program headers of the kinds that are followed; linkers make about ten, and a file has at most 65,534 of all kinds.
#: Bounds header.py.
MAX_SEGMENTS = 1 << 12

#: Section headers looked at as extra evidence; with more, they count as absent. Bounds sections.py.
MAX_SECTION_HEADERS = 1 << 16

#: Entries of PT_DYNAMIC before its DT_NULL (a library with a thousand DT_NEEDED stays far below). Bounds dynamic.py.
MAX_DYNAMIC_ENTRIES = 1 << 15

#: DT_NEEDED entries of one file, and bytes of their names. Linkers make a handful, and a library with a thousand is
#: extreme; ld.so would open that many files before it starts the program. Bounds dynamic.py and reader.py.
MAX_NEEDED = 1 << 12
MAX_NEEDED_BYTES = 1 << 20

#: Bytes of the names in PT_DYNAMIC and in the version records of one file, all together. Bounds reader.py.
MAX_DYNAMIC_NAME_BYTES = 8 << 20

#: Bytes of PT_INTERP: Linux refuses a longer one (PATH_MAX, fs/binfmt_elf.c). Bounds reader.py.
MAX_INTERPRETER_SIZE = 4096

#: Bytes of one PT_NOTE, and how many of them are searched for a build ID and dlopen metadata. Bounds notes.py.
MAX_NOTE_SIZE = 1 << 16
MAX_NOTE_SEGMENTS = 16

#: Notes with dlopen metadata of one file, entries in all of them, names of an entry, and characters of a text; the
#: libraries of systemd have about thirty entries. Bounds notes.py and dlopen_notes.py.
MAX_DLOPEN_PAYLOADS = 256
MAX_DLOPEN_NOTES = 256
MAX_DLOPEN_SONAMES = 16
MAX_DLOPEN_TEXT = 4096

#: Version records (Verneed, Vernaux, Verdef) of one file; glibc has about 50. Bounds versions.py.
MAX_VERSION_RECORDS = 1 << 14

#: Dynamic symbols of one file. Bounds count.py and hashes.py.
MAX_SYMBOLS = 1 << 20

#: Buckets of a hash table; linkers make about as many as there are symbols. Bounds hashes.py.
MAX_HASH_BUCKETS = 1 << 22

#: Steps along one chain of a hash table; linkers keep chains at a handful. Bounds hashes.py and batch.py.
MAX_CHAIN_LENGTH = 1 << 16

#: Entries of one chain whose stored hash is the wanted one: versions of one symbol, and rare collisions. Bounds
#: symbol_entries.py.
MAX_CANDIDATES = 1 << 12

#: Bytes of one name. Demanglers give up far earlier. Bounds strings.py.
MAX_NAME_LENGTH = 1 << 20

#: Bytes of a string table that is read in one go for the names of PT_DYNAMIC and the version records: of a program
#: twenty, and it takes as long as reading five of them. Bounds reader.py.
MAX_RESIDENT_NAMES = 1 << 16

#: Bytes of a string table that is read in one go when all its names are wanted, or those of all imports; a larger one
#: is read in windows. Imports are few, and one read of libtorch_cpu.so's 5 MB costs more than 1,198 small ones.
MAX_RESIDENT_STRINGS = 16 << 20
MAX_RESIDENT_IMPORT_STRINGS = 1 << 20

#: Bytes of the names handed out by one pass over the symbols. Strings may overlap, so that a table of n bytes can
#: spell out n * n / 2 bytes of names; a linker only merges common endings. Bounds symbol_entries.py.
MAX_SYMBOL_NAME_BYTES = 256 << 20

#: Imports, and bytes of their names, that are kept in a dictionary. With more, each question searches the string table
#: for the name. Bounds import_index.py and batch.py.
MAX_INDEXED_IMPORTS = 1 << 17
MAX_INDEXED_IMPORT_BYTES = 8 << 20

#: Places where such a name may stand, at the end of longer names too; a linker writes no name twice. Bounds
#: import_index.py.
MAX_NAME_PLACES = 1 << 18

#: Bytes of the dynamic string table, which is searched for names. Bounds dynamic.py.
MAX_STRING_TABLE = 256 << 20

#: Bytes of a symbol table, and of a hash table, that are read at once to look up many names; names whose hashes are
#: kept; and bytes of the hash tables that are kept, of one file and of all files together. Bounds batch.py.
MAX_RESIDENT_TABLE = 8 << 20
MAX_HASHES_KEPT = 1 << 14
MAX_TABLE_KEPT = 1 << 20
MAX_TABLES_KEPT = 64 << 20

#: Bytes of relocations read for the largest symbol index they name, and of those looked at for what refers to a symbol.
#: Bounds count.py, direct_data.py, direct_uses.py and relocations.py.
MAX_RELOCATION_BYTES = 16 << 20

#: Bytes of code that are gone through for what one function reaches. Bounds direct_data.py.
MAX_FUNCTION_SIZE = 1 << 16

#: Bytes of code that are gone through for what reaches one object. Bounds direct_uses.py.
MAX_SCANNED_CODE = 16 << 20

#: Bytes of .symtab and of its names that the look into .symtab goes through; 128 MiB are five million symbols. Bounds
#: deep.py.
MAX_SYMTAB_SIZE = 128 << 20
MAX_SYMTAB_STRINGS = 128 << 20

#: Places in .symtab's names where a wanted name ends, and entries reported. Bounds deep.py.
MAX_DEEP_MATCHES = 1 << 12

#: Names of .symtab that hold the words of one C++ name, and the bytes of one: as many as can be looked up in turn,
#: and as long as demangle.py takes them. Bounds deep.py.
MAX_DEEP_CANDIDATES = 1 << 8
MAX_DEEP_NAME = 1 << 12
