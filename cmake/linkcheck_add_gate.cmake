#[=[
linkcheck_add_gate(
    TARGET <target>              the program (or library) to judge: an EXECUTABLE, SHARED or MODULE library
    PROFILE <name>               a built-in profile, such as executorch-caller-stream; and/or
    [POLICY <file>]              a linkcheck.toml
    [BUNDLE <dir>]               a folder in which the program is packaged: every ELF file in it is judged, too
    [DLOPEN <target|path>...]    libraries that <target> opens with dlopen, which no ELF tag shows
    [DLOPEN_GLOBAL ...]          the same, opened with RTLD_GLOBAL
    [LIBRARY_PATH <dir>...]      where the target machine finds further libraries, as LD_LIBRARY_PATH would say
    [EXTERNAL <soname>...]       libraries (patterns) that the target machine has and this one need not have
    [DEPENDS <target>...])       what else must be built first, such as the target that fills <dir>

Relative paths of BUNDLE and DLOPEN are of the current build directory, that of POLICY of the source directory. POLICY
must be there when cmake runs, unless it is in the build tree, where the build may generate it (DEPENDS).

DLOPEN is for <target> as it was built. The check of BUNDLE does not get it: what its programs open there is said by
[[dlopen]] in POLICY.

Runs `linkcheck verify` in every build that includes the default target, after <target> and what it opens are up to
date, and fails that build. It runs every time, not only when <target> was linked anew: a library it loads may have been
replaced in the meantime, and a gate that failed once must not pass because nothing changed. The same check is a test for
ctest: linkcheck.<target>, and linkcheck.<target>.bundle for the folder.

linkcheck answers "could not check" with a failure as well, so a library that is nowhere to be found fails the build.
The build target linkcheck_gate_<target> runs the gate alone.
]=]
include_guard(GLOBAL)
cmake_policy(VERSION 3.28...4.0)
include("${CMAKE_CURRENT_LIST_DIR}/linkcheck_find_command.cmake")

function(linkcheck_add_gate)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "TARGET;PROFILE;POLICY;BUNDLE" "DLOPEN;DLOPEN_GLOBAL;LIBRARY_PATH;EXTERNAL;DEPENDS")
    if(DEFINED arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "linkcheck_add_gate: unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
    elseif(DEFINED arg_KEYWORDS_MISSING_VALUES)
        message(FATAL_ERROR "linkcheck_add_gate: no value for ${arg_KEYWORDS_MISSING_VALUES}")
    elseif(NOT DEFINED arg_TARGET OR NOT (DEFINED arg_PROFILE OR DEFINED arg_POLICY))
        message(FATAL_ERROR "linkcheck_add_gate: TARGET and PROFILE (or POLICY) are required")
    elseif(NOT TARGET ${arg_TARGET})
        message(FATAL_ERROR "linkcheck_add_gate: there is no target ${arg_TARGET}")
    elseif(TARGET linkcheck_gate_${arg_TARGET})
        message(FATAL_ERROR "linkcheck_add_gate: ${arg_TARGET} has a gate already: one call for each target")
    endif()
    get_target_property(type ${arg_TARGET} TYPE)
    if(NOT type MATCHES "^(EXECUTABLE|SHARED_LIBRARY|MODULE_LIBRARY)$")
        message(FATAL_ERROR "linkcheck_add_gate: ${arg_TARGET} is a ${type}: there is no linked file to judge")
    endif()
    linkcheck_find_command(linkcheck)

    # What holds for the build tree and the bundle alike.
    set(verify "${linkcheck}" verify)
    if(DEFINED arg_PROFILE)
        list(APPEND verify --profile "${arg_PROFILE}")
    endif()
    if(DEFINED arg_POLICY)
        cmake_path(ABSOLUTE_PATH arg_POLICY BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" NORMALIZE)
        # What the build itself generates lies in the build tree, and may not be there yet.
        cmake_path(IS_PREFIX CMAKE_BINARY_DIR "${arg_POLICY}" NORMALIZE generated)
        if(NOT generated AND NOT EXISTS "${arg_POLICY}")
            message(FATAL_ERROR "linkcheck_add_gate: POLICY: there is no file ${arg_POLICY}")
        endif()
        list(APPEND verify --policy "${arg_POLICY}")
    endif()
    foreach(directory IN LISTS arg_LIBRARY_PATH)
        list(APPEND verify --library-path "${directory}")
    endforeach()
    foreach(soname IN LISTS arg_EXTERNAL)
        list(APPEND verify --external "${soname}")
    endforeach()

    set(depends ${arg_TARGET} ${arg_DEPENDS})
    set(opened "")
    set(keywords DLOPEN DLOPEN_GLOBAL)
    set(flags --dlopen --dlopen-global)
    foreach(keyword flag IN ZIP_LISTS keywords flags)
        foreach(item IN LISTS arg_${keyword})
            if(TARGET "${item}")
                list(APPEND depends "${item}")
                set(item "$<TARGET_FILE:${item}>")
            elseif(NOT item MATCHES "^\\$<")
                cmake_path(ABSOLUTE_PATH item BASE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}" NORMALIZE)
            endif()
            list(APPEND opened ${flag} "${item}")
        endforeach()
    endforeach()
    set(check ${verify} ${opened} -- "$<TARGET_FILE:${arg_TARGET}>")
    set(commands COMMAND ${check})
    add_test(NAME linkcheck.${arg_TARGET} COMMAND ${check})
    if(DEFINED arg_BUNDLE)
        cmake_path(ABSOLUTE_PATH arg_BUNDLE BASE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}" NORMALIZE)
        # As it will be shipped, as far as its RUNPATH does not lead into the build tree, and without that tree's plugins.
        set(check ${verify} -- "${arg_BUNDLE}")
        list(APPEND commands COMMAND ${check})
        add_test(NAME linkcheck.${arg_TARGET}.bundle COMMAND ${check})
    endif()

    add_custom_target(
        linkcheck_gate_${arg_TARGET} ALL
        ${commands}
        WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}"
        COMMENT "linkcheck verify ${arg_TARGET}"
        VERBATIM)
    add_dependencies(linkcheck_gate_${arg_TARGET} ${depends})
endfunction()
