"""The C of a graph: its modules, and the driver that opens libraries and asks every module what it reached."""

from __future__ import annotations

from tests.loader.fuzz.graph import MAIN, UNIQUE

DRIVER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#ifndef RTLD_DEEPBIND
#define RTLD_DEEPBIND 0
#endif
static void *handles[16];
static int opened;
static void *find(const char *kind, int id) {
  char name[32];
  snprintf(name, sizeof name, "%s_%d", kind, id);
  void *found = dlsym(RTLD_DEFAULT, name);
  for (int i = 0; !found && i < opened; i++) found = dlsym(handles[i], name);
  return found;
}
static void say_function(int id, int (*who)(void)) { if (who) printf("acc %d %d\n", id, who()); }
static void say_object(int id, void *(*where)(void)) {
  if (!where) return;
  void *address = where();
  Dl_info info = {0};
  printf("var %d %s\n", id, !address ? "-" : dladdr(address, &info) ? info.dli_fname : "?");
}
static int say_map(struct dl_phdr_info *info, size_t size, void *unused) {
  static int count;
  if (count++) printf("map %s\n", info->dlpi_name);
  return 0;
}
int who_99(void);
void *where_99(void);
int main(int count, char **arguments) {
  setvbuf(stdout, 0, _IONBF, 0);
  for (int i = 1; i < count; i++) {
    int mode = RTLD_NOW | (arguments[i][0] == 'g' ? RTLD_GLOBAL : RTLD_LOCAL);
    if (arguments[i][0] == 'd') mode |= RTLD_DEEPBIND;
    printf("opening %d\n", i - 1);
    void *handle = dlopen(arguments[i] + 1, mode);
    if (!handle) { printf("failed %d %s\n", i - 1, dlerror()); break; }
    handles[opened++] = handle;
  }
  dl_iterate_phdr(say_map, 0);
  for (int id = 0; id < 20; id++) {
    say_function(id, (int (*)(void))find("who", id));
    say_object(id, (void *(*)(void))find("where", id));
  }
  say_function(99, who_99);
  say_object(99, where_99);
  return 0;
}
"""


def write_source(number: int, function: str, object_: str) -> str:
    """The C of one module."""
    lines = []
    attribute = {
        "weak": "__attribute__((weak)) ",
        "hidden": '__attribute__((visibility("hidden"))) ',
        "protected": '__attribute__((visibility("protected"))) ',
    }
    if function == "import":
        lines.append("extern int acc(void);")
    elif function == "weak-import":
        lines.append("extern int acc(void) __attribute__((weak));")
    elif function == "v1-v2":
        lines.append('__asm__(".symver acc_old, acc@V1\\n.symver acc_new, acc@@V2");')
        lines.append(f"int acc_old(void) {{ return {number + 100}; }} int acc_new(void) {{ return {number}; }}")
        lines.append("extern int acc(void);")
    elif function == "v1-hidden":
        lines.append('__asm__(".symver acc_old, acc@V1");')
        lines.append(f"int acc_old(void) {{ return {number}; }}")
    elif function != "none":
        lines.append(f"{attribute.get(function, '')}int acc(void) {{ return {number}; }}")
    if object_ == "import":
        lines.append("extern int var;")
    elif object_ == "weak-import":
        lines.append("extern int var __attribute__((weak));")
    elif object_ in UNIQUE:
        visibility = ".protected var\\n" if object_ == "unique-protected" else ""
        lines.append('extern int var, direct __attribute__((visibility("hidden"))); __asm__(".pushsection .data\\n')
        lines[-1] += f".globl var\\n.type var, @gnu_unique_object\\n.size var, 4\\n{visibility}"
        lines[-1] += f'.globl direct\\n.hidden direct\\nvar: direct: .long {number}\\n.popsection");'
    elif object_ != "none":
        lines.append(f"{attribute.get(object_, '')}int var = {number};")
    if function not in ("none", "v1-hidden", "v1-v2"):
        call = "acc ? acc() : -1" if function == "weak-import" else "acc()"
        lines.append(f"int who_{number}(void) {{ return {call}; }}")
    if object_ != "none":
        used = "direct" if object_ == "unique-direct" else "var"
        lines.append(f"void *where_{number}(void) {{ return &{used}; }}")
    if number == MAIN:
        if function == "none":
            lines.append("int who_99(void) { return -2; }")
        if object_ == "none":
            lines.append("void *where_99(void) { return 0; }")
    return "\n".join(lines) + "\n"
