#[=[
linkcheck_use_existing_extension_cuda(<linked-var> <library-var>)

For an `extension_cuda` or `executorch::extension_cuda` that exists: sets <linked-var> to the name to link and
<library-var> to the SHARED library behind it. Ends configuration when there is none, when its file may not be linked, or
when the two names are two libraries.
]=]
include_guard(GLOBAL)
cmake_policy(VERSION 3.28...4.0)
include("${CMAKE_CURRENT_LIST_DIR}/linkcheck_compare_libraries.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/linkcheck_list_imported_files.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/linkcheck_resolve_shared_library.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/../linkcheck_validate_prebuilt.cmake")

function(linkcheck_use_existing_extension_cuda linked_var library_var)
    set(linked "")
    set(library "")
    foreach(name IN ITEMS extension_cuda executorch::extension_cuda)
        if(NOT TARGET ${name})
            continue()
        endif()
        linkcheck_resolve_shared_library(${name} found)
        if(NOT linked)
            set(linked ${name})
            set(library ${found})
        else()
            linkcheck_compare_libraries(${library} ${found} same)
            if(NOT same)
                message(
                    FATAL_ERROR
                        "linkcheck: ${linked} and ${name} are two libraries (${library}, ${found}). A program that "
                        "links both has two caller streams; keep one of them.")
            endif()
        endif()
    endforeach()

    # A library of this build is judged by its gate once it is there. An imported one may be made during the build as
    # well (ExternalProject); what is there now can be judged now, whatever name it goes by.
    linkcheck_list_imported_files(${library} locations)
    foreach(location IN LISTS locations)
        if(EXISTS "${location}" OR IS_SYMLINK "${location}")
            linkcheck_validate_prebuilt(FILE "${location}" OPTION "The target ${library}")
        else()
            message(STATUS "linkcheck: ${library}: ${location} is not there yet, so it is not judged here")
        endif()
    endforeach()
    set(${linked_var} ${linked} PARENT_SCOPE)
    set(${library_var} ${library} PARENT_SCOPE)
endfunction()
