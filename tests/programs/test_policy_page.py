"""The first example of docs/policy.md, on the program that it describes: right as it is copied."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ci.docs import ROOT
from tests.loader.workshop import needs_compiler

if TYPE_CHECKING:
    from pathlib import Path

    from tests.programs.yard import Yard

pytestmark = needs_compiler

SESSION = """#c++
namespace acme { int *session_table() { static thread_local int table[4]; return table; } }
extern "C" int acme_session_open(void) { return ++acme::session_table()[0]; }
"""
PLUGIN = """#c++
namespace acme { int *session_table(); }
extern "C" __attribute__((visibility("default"))) int acme_plugin_init(void) { return acme::session_table()[0]; }
"""
SERVER = """
#include <dlfcn.h>
#include <stdio.h>
int acme_session_open(void);
int main(void) {
  acme_session_open();
  void *plugin = dlopen("lib/plugins/libauth.so", RTLD_NOW | RTLD_LOCAL);
  if (!plugin) { puts(dlerror()); return 1; }
  printf("%d", ((int (*)(void))dlsym(plugin, "acme_plugin_init"))());
  return 0;
}
"""


def _make(yard: Yard, *plugin: str | Path) -> Path:
    page = (ROOT / "docs" / "policy.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```toml\n(extends.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)
    (yard.base / "linkcheck.toml").write_text(example, encoding="utf-8")
    session = yard.library("lib/libsession.so", SESSION)
    yard.library("lib/plugins/libauth.so", PLUGIN, *(plugin or (session, "-Wl,-rpath,$ORIGIN/..")))
    return yard.program("bin/server", SERVER, session, "-ldl", "-Wl,-rpath,$ORIGIN/../lib")


def test_the_example_passes_its_own_program(yard: Yard) -> None:
    server = _make(yard)
    assert yard.run(server).output == "1"
    verdict = yard.verify("bin/server")
    assert verdict.status == 0
    assert verdict.codes == set()


def test_the_example_finds_a_plug_in_with_a_copy(yard: Yard) -> None:
    (yard.base / "copy.cpp").write_text(SESSION.removeprefix("#c++"), encoding="utf-8")
    server = _make(yard, yard.base / "copy.cpp", "-fvisibility=hidden")
    assert yard.run(server).output == "0"
    assert {finding["code"] for finding in yard.verify("bin/server").errors} >= {"LC201", "LC301"}
