"""The words that several tests of one shared state are made of: an owner, a copy of it, a user and a program."""

#: A library with a state of its own; the number says whose it is.
STATE = "static int state = %d; int s_get(void) { return state; } int s_add(void) { state++; return s_get(); }"
#: A library that uses it, and gives what it got to the program.
USER = "int s_get(void); int probe(void) { return s_get(); }"
PROGRAM = '#include <stdio.h>\nint probe(void); int main(void) { printf("%d", probe()); return 0; }'
POLICY = '[[state]]\nname = "state"\nowner = ["libowner.so"]\nsymbols = ["s_get", "s_add"]\n'
NEEDS = ("-Wl,--no-as-needed", "-Wl,-rpath,$ORIGIN")
