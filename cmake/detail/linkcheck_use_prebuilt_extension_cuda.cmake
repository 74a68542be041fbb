#[=[
linkcheck_use_prebuilt_extension_cuda(<linked-var> <library-var>)

For EXECUTORCH_EXTENSION_CUDA_LIBRARY: judges the file and declares it as the global IMPORTED SHARED target
`extension_cuda`. Ends configuration when the file may not be linked.
]=]
include_guard(GLOBAL)
cmake_policy(VERSION 3.28...4.0)
include("${CMAKE_CURRENT_LIST_DIR}/../linkcheck_validate_prebuilt.cmake")

function(linkcheck_use_prebuilt_extension_cuda linked_var library_var)
    set(option EXECUTORCH_EXTENSION_CUDA_LIBRARY)
    if("${${option}}" STREQUAL "")
        message(FATAL_ERROR "${option} is empty: name a shared library, or do not set it at all.")
    elseif("${${option}}" MATCHES "-NOTFOUND$")
        message(FATAL_ERROR "${option} is ${${option}}: a search for the library found none.")
    endif()
    if(DEFINED CACHE{${option}})
        # A relative path on cmake's command line is one of the directory it was started in: so CMake itself makes it
        # absolute as soon as the entry has this type.
        set(${option} "" CACHE FILEPATH "A prebuilt libextension_cuda.so")
    endif()
    cmake_path(ABSOLUTE_PATH ${option} BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" NORMALIZE OUTPUT_VARIABLE file)
    linkcheck_validate_prebuilt(FILE "${file}" OPTION ${option} SONAME soname)

    # Programs record the SONAME, so that is the name ld.so searches for in this directory. Where the file has another
    # name, a link that has the right one goes into the build tree, and its directory into the build's search paths.
    cmake_path(GET file PARENT_PATH directory)
    file(REAL_PATH "${file}" real)
    set(location "${file}")
    set(by_soname "")
    if(EXISTS "${directory}/${soname}")
        file(REAL_PATH "${directory}/${soname}" by_soname)
    endif()
    if(soname AND NOT by_soname STREQUAL real)
        set(location "${CMAKE_BINARY_DIR}/linkcheck-files/prebuilt/${soname}")
        file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/linkcheck-files/prebuilt")
        file(CREATE_LINK "${real}" "${location}" SYMBOLIC)
    endif()

    add_library(extension_cuda SHARED IMPORTED GLOBAL)
    set_target_properties(extension_cuda PROPERTIES IMPORTED_LOCATION "${location}" IMPORTED_SONAME "${soname}")
    message(STATUS "linkcheck: extension_cuda is the prebuilt ${file}")
    set(${linked_var} extension_cuda PARENT_SCOPE)
    set(${library_var} extension_cuda PARENT_SCOPE)
endfunction()
