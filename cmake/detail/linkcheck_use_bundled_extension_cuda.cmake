#[=[
linkcheck_use_bundled_extension_cuda(<linked-var> <library-var>)

Adds native/caller_stream, the library that comes with linkcheck. Its sources lie beside these modules, in a checkout
and in an installed package alike.
]=]
include_guard(GLOBAL)
cmake_policy(VERSION 3.28...4.0)

function(linkcheck_use_bundled_extension_cuda linked_var library_var)
    cmake_path(
        ABSOLUTE_PATH CMAKE_CURRENT_FUNCTION_LIST_DIR NORMALIZE OUTPUT_VARIABLE here)
    cmake_path(SET sources NORMALIZE "${here}/../../native/caller_stream")
    get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
    if(NOT "CXX" IN_LIST languages)
        message(FATAL_ERROR "LINKCHECK_BUNDLED_EXTENSION_CUDA: the library is C++: enable CXX in project()")
    endif()
    add_subdirectory("${sources}" "${CMAKE_BINARY_DIR}/linkcheck-files/caller_stream")
    message(STATUS "linkcheck: extension_cuda is the one that comes with linkcheck")
    set(${linked_var} extension_cuda PARENT_SCOPE)
    set(${library_var} extension_cuda PARENT_SCOPE)
endfunction()
