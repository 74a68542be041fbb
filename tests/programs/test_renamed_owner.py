"""An owner under another name: what LC104 advises for the policy is followed, and the gate passes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.loader.workshop import needs_compiler

if TYPE_CHECKING:
    from tests.programs.yard import Yard

pytestmark = needs_compiler

OLD, NEW = '"libtable.so"', '"libtable.so", "libmine.so"'
POLICY = f"""
[[state]]
name = "table"
owner = [{OLD}]
symbols = ["table_get"]

[[role]]
name = "app"
kind = "executable"
need = [{OLD}]
import = ["table_get"]
"""


def test_the_advice_of_lc104_leads_to_a_gate_that_passes(yard: Yard) -> None:
    library = yard.library("libtable.so", "int table_get(void) { return 0; }", soname="libmine.so")
    library.rename(yard.base / "libmine.so")
    program = yard.program(
        "program",
        "int table_get(void); int main(void) { return table_get(); }",
        yard.base / "libmine.so",
        "-Wl,-rpath,$ORIGIN",
    )
    assert yard.run(program).status == 0
    old = yard.policy(POLICY)
    (advice,) = yard.ask("prebuilt", "libmine.so", "--policy", old, "--state", "table")["findings"]
    assert "`owner` of the state “table” and to `need` of the role “app”" in advice["remedy"]
    only_owner = yard.policy(POLICY.replace(OLD, NEW, 1))
    assert yard.verify(program, "--policy", only_owner).codes == {"LC201"}  # what the first key alone comes to
    assert yard.verify(program, "--policy", yard.policy(POLICY.replace(OLD, NEW))).codes == set()
