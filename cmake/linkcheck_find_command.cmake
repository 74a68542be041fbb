#[=[
linkcheck_find_command(<out-var>)

Sets <out-var> in the caller's scope to the path of the `linkcheck` command, and makes sure that it starts.

LINKCHECK_EXECUTABLE (cache, FILEPATH) names another one. Without it the command is searched beside the Python
environment that these modules are installed in, then on PATH. No command is a fatal error that says how to get it: a
check that is skipped because its tool is missing looks like one that passed.
]=]
include_guard(GLOBAL)
cmake_policy(VERSION 3.28...4.0)

function(linkcheck_find_command out_var)
    if(ARGC GREATER 1)
        message(FATAL_ERROR "linkcheck_find_command: unknown arguments: ${ARGN}")
    endif()
    set(how "  python3 -m pip install linkcheck-elf\nor set LINKCHECK_EXECUTABLE to the command's path.")

    # Installed, this file is <environment>/lib/python3.N/site-packages/linkcheck/share/cmake/..., and the command of the
    # same environment fits these modules better than one that PATH happens to find. A checkout has no such neighbour.
    set(neighbour "")
    if(CMAKE_CURRENT_FUNCTION_LIST_DIR MATCHES "^(.+)/lib[^/]*/python[^/]*/(site|dist)-packages/linkcheck/share/cmake$")
        set(neighbour "${CMAKE_MATCH_1}/bin")
    endif()
    find_program(
        LINKCHECK_EXECUTABLE linkcheck
        HINTS ${neighbour}
        DOC "The linkcheck command"
        # It runs on the machine that builds, so a cross-compiling toolchain's roots are no place to look.
        NO_CMAKE_FIND_ROOT_PATH)
    if(NOT LINKCHECK_EXECUTABLE)
        message(FATAL_ERROR "linkcheck: the linkcheck command was not found. Install it:\n${how}")
    endif()

    get_property(proven GLOBAL PROPERTY LINKCHECK_PROVEN_EXECUTABLE)
    if(NOT proven STREQUAL "${LINKCHECK_EXECUTABLE}")
        execute_process(
            COMMAND "${LINKCHECK_EXECUTABLE}" --version
            RESULT_VARIABLE status
            OUTPUT_VARIABLE output
            ERROR_VARIABLE error
            OUTPUT_STRIP_TRAILING_WHITESPACE)
        if(NOT status STREQUAL "0" OR NOT output MATCHES "^linkcheck, version ")
            message(
                FATAL_ERROR
                    "linkcheck: LINKCHECK_EXECUTABLE is ${LINKCHECK_EXECUTABLE}, and that is no linkcheck command that "
                    "runs (${status}): ${output} ${error}\nInstall it:\n${how}")
        endif()
        set_property(GLOBAL PROPERTY LINKCHECK_PROVEN_EXECUTABLE "${LINKCHECK_EXECUTABLE}")
    endif()
    set(${out_var} "${LINKCHECK_EXECUTABLE}" PARENT_SCOPE)
endfunction()
