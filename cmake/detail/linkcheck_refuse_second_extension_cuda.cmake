#[=[
linkcheck_refuse_second_extension_cuda(<library>)

Ends configuration when executorch::extension_cuda is a library other than <library>: found after the selection, for
example by a find_package(executorch) further down, it would come into programs as a second caller stream.
]=]
include_guard(GLOBAL)
cmake_policy(VERSION 3.28...4.0)
include("${CMAKE_CURRENT_LIST_DIR}/linkcheck_compare_libraries.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/linkcheck_resolve_shared_library.cmake")

function(linkcheck_refuse_second_extension_cuda library)
    if(NOT TARGET executorch::extension_cuda)
        return()
    endif()
    linkcheck_resolve_shared_library(executorch::extension_cuda found)
    linkcheck_compare_libraries(${library} ${found} same)
    if(NOT same)
        message(
            FATAL_ERROR
                "linkcheck: executorch::extension_cuda was declared after linkcheck_select_extension_cuda() had chosen "
                "${library}, and is another library. A program that links both has two caller streams: call "
                "find_package(executorch) first, so that its library is the one that is chosen.")
    endif()
endfunction()
