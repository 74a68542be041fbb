#[=[
linkcheck_validate_prebuilt(
    FILE <path>
    [PROFILE <name>]     a built-in profile to judge by; default: executorch-caller-stream, and none with POLICY
    [POLICY <file>]      a linkcheck.toml to judge by
    [STATE <name>]       the state that the file would own; default: the first one of the profile, else of the policy
    [MACHINE <name>]     what it must be built for, as `linkcheck prebuilt --machine` takes it; default: see below
    [OPTION <name>]      the option the user named the file with, for the message; default: FILE
    [SONAME <out-var>])  receives the library's SONAME

Ends configuration, with linkcheck's message and remedy, unless <path> may be linked as the library that owns the
state. The content decides, not the name: a linker takes a static archive called libextension_cuda.so without a word and
puts a copy of the state into every file it links. Relative paths are of the current source directory.

Without POLICY the nearest linkcheck.toml at or above the current source directory is laid over the profile. A state of
it is judged only when STATE names it, for the profile's states come first.

A file that passed is a dependency of the configuration from then on, and so is POLICY: when one is replaced, the next
build asks again.

The machine is the one that runs cmake or, in a cross build, CMAKE_SYSTEM_PROCESSOR.
]=]
include_guard(GLOBAL)
cmake_policy(VERSION 3.28...4.0)
include("${CMAKE_CURRENT_LIST_DIR}/linkcheck_find_command.cmake")

function(linkcheck_validate_prebuilt)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "FILE;PROFILE;POLICY;STATE;MACHINE;OPTION;SONAME" "")
    if(DEFINED arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "linkcheck_validate_prebuilt: unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
    elseif(DEFINED arg_KEYWORDS_MISSING_VALUES AND NOT arg_KEYWORDS_MISSING_VALUES STREQUAL "FILE")
        message(FATAL_ERROR "linkcheck_validate_prebuilt: no value for ${arg_KEYWORDS_MISSING_VALUES}")
    elseif(NOT DEFINED arg_OPTION)
        set(arg_OPTION "linkcheck_validate_prebuilt: FILE")
    endif()
    if("${arg_FILE}" STREQUAL "")
        message(FATAL_ERROR "${arg_OPTION} is empty: name a shared library, or do not set it at all.")
    endif()
    cmake_path(ABSOLUTE_PATH arg_FILE BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" NORMALIZE)
    # Before CMP0174 an empty value leaves the variable undefined, and the default would be judged by in its place.
    foreach(keyword IN ITEMS PROFILE POLICY STATE MACHINE)
        if(keyword IN_LIST ARGV AND "${arg_${keyword}}" STREQUAL "")
            message(FATAL_ERROR "linkcheck_validate_prebuilt: ${keyword} is empty: give it a value, or leave it out.")
        endif()
    endforeach()

    set(depends "${arg_FILE}")
    if(DEFINED arg_POLICY)
        cmake_path(ABSOLUTE_PATH arg_POLICY BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" NORMALIZE)
        if(NOT EXISTS "${arg_POLICY}")
            message(FATAL_ERROR "linkcheck_validate_prebuilt: POLICY: there is no file ${arg_POLICY}")
        endif()
        list(APPEND depends "${arg_POLICY}")
    elseif(NOT DEFINED arg_PROFILE)
        set(arg_PROFILE executorch-caller-stream)
    endif()
    if(NOT DEFINED arg_MACHINE AND CMAKE_CROSSCOMPILING)
        set(arg_MACHINE "${CMAKE_SYSTEM_PROCESSOR}")
    endif()
    set(asked "")
    foreach(keyword IN ITEMS PROFILE POLICY STATE MACHINE)
        if(DEFINED arg_${keyword})
            string(TOLOWER "${keyword}" option)
            list(APPEND asked "--${option}" "${arg_${keyword}}")
        endif()
    endforeach()

    linkcheck_find_command(linkcheck)
    string(SHA256 key "${arg_FILE}")
    string(SUBSTRING "${key}" 0 16 key)
    set(verdict "${CMAKE_BINARY_DIR}/linkcheck-files/prebuilt-${key}.cmake")
    file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/linkcheck-files")
    file(REMOVE "${verdict}")
    execute_process(
        COMMAND
            "${linkcheck}" prebuilt ${asked} --format cmake --output "${verdict}" -- "${arg_FILE}"
        WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}"
        RESULT_VARIABLE status
        OUTPUT_VARIABLE ignored
        ERROR_VARIABLE error)
    if(NOT status MATCHES "^[01]$" OR NOT EXISTS "${verdict}")
        message(FATAL_ERROR "${arg_OPTION}: ${arg_FILE} could not be judged (${status}):\n${error}")
    endif()
    set(LINKCHECK_PREBUILT_OK FALSE)
    include("${verdict}")
    # Both must say so: the status is what linkcheck promises, the variable what this file was written with.
    if(NOT status EQUAL 0 OR NOT LINKCHECK_PREBUILT_OK)
        message(
            FATAL_ERROR
                "${arg_OPTION} may not be linked: ${arg_FILE}\n${LINKCHECK_PREBUILT_MESSAGE}\n"
                "${LINKCHECK_PREBUILT_REMEDY}")
    endif()

    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${depends})
    if(DEFINED arg_SONAME)
        set(${arg_SONAME} "${LINKCHECK_PREBUILT_SONAME}" PARENT_SCOPE)
    endif()
endfunction()
