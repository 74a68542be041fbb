#[=[
linkcheck_use_executorch_source(<source> <option> <linked-var> <library-var>)

Adds the extension/cuda of the ExecuTorch checkout <source>, which the variable <option> names, so that the library is
built as ExecuTorch builds it and not from a second description. Ends configuration when the checkout has no
extension/cuda, or when that declares no SHARED library `extension_cuda`. ExecuTorch's install rules come with it.
]=]
include_guard(GLOBAL)
cmake_policy(VERSION 3.28...4.0)
include("${CMAKE_CURRENT_LIST_DIR}/linkcheck_resolve_shared_library.cmake")

function(linkcheck_use_executorch_source source option linked_var library_var)
    if("${source}" STREQUAL "")
        message(FATAL_ERROR "${option} is empty: name an ExecuTorch checkout, or do not set it at all.")
    endif()
    if(DEFINED CACHE{${option}})
        set(${option} "" CACHE PATH "An ExecuTorch checkout") # relative to where cmake was started
        set(source "${${option}}")
    endif()
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" NORMALIZE)
    if(NOT EXISTS "${source}/extension/cuda/CMakeLists.txt")
        message(
            FATAL_ERROR
                "${option} is no ExecuTorch checkout with a CUDA extension: there is no "
                "${source}/extension/cuda/CMakeLists.txt")
    endif()

    # What ExecuTorch's top-level CMakeLists sets before it enters extension/cuda. A project's own values win.
    # Its headers are included as <executorch/...>: through this link a checkout may have any name, and its neighbours
    # are not on the include path.
    set(include_directory "${CMAKE_BINARY_DIR}/linkcheck-files/executorch-include")
    file(MAKE_DIRECTORY "${include_directory}")
    file(CREATE_LINK "${source}" "${include_directory}/executorch" SYMBOLIC)
    if(NOT _common_include_directories)
        set(_common_include_directories "${include_directory}")
        if(IS_DIRECTORY "${source}/runtime/core/portable_type/c10")
            list(APPEND _common_include_directories "${source}/runtime/core/portable_type/c10")
        endif()
    endif()
    set(EXECUTORCH_ROOT "${source}")
    if(NOT DEFINED CMAKE_CXX_STANDARD)
        set(CMAKE_CXX_STANDARD 17)
    endif()
    # The library's file name and SONAME carry ExecuTorch's version, not that of the project that builds it; without
    # any version they would end in a dot.
    if(EXISTS "${source}/version.txt")
        file(STRINGS "${source}/version.txt" version REGEX "^[0-9]+(\\.[0-9]+)*" LIMIT_COUNT 1)
        if(version MATCHES "^(([0-9]+)(\\.[0-9]+)*)")
            set(PROJECT_VERSION "${CMAKE_MATCH_1}")
            set(PROJECT_VERSION_MAJOR "${CMAKE_MATCH_2}")
        endif()
    endif()
    if(NOT DEFINED CMAKE_INSTALL_LIBDIR)
        include(GNUInstallDirs)
    endif()
    add_subdirectory("${source}/extension/cuda" "${CMAKE_BINARY_DIR}/linkcheck-files/executorch-extension-cuda")

    if(NOT TARGET extension_cuda)
        message(FATAL_ERROR "${option}: ${source}/extension/cuda declares no target extension_cuda")
    endif()
    linkcheck_resolve_shared_library(extension_cuda library)
    message(STATUS "linkcheck: extension_cuda is built from ${source}/extension/cuda")
    set(${linked_var} extension_cuda PARENT_SCOPE)
    set(${library_var} ${library} PARENT_SCOPE)
endfunction()
