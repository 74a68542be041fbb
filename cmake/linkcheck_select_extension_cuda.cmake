#[=[
linkcheck_select_extension_cuda()

Chooses the one libextension_cuda.so of this build. The first of these that is given is taken, and one that is given but
unusable ends configuration: falling through to the next would build against a library that nobody asked for.

1. A target `extension_cuda` or `executorch::extension_cuda` that exists: from add_subdirectory(executorch), or from
   find_package(executorch). It must be a SHARED library, or an IMPORTED SHARED one whose file passes
   linkcheck_validate_prebuilt(); aliases and INTERFACE libraries are followed to it. Both, if not one library, are an
   error.
2. EXECUTORCH_EXTENSION_CUDA_LIBRARY: a prebuilt library, which must pass linkcheck_validate_prebuilt().
3. EXECUTORCH_SOURCE_DIR, else EXECUTORCH_ROOT: an ExecuTorch checkout, whose own extension/cuda is added. (An
   EXECUTORCH_ROOT with an installed ExecuTorch in it is find_package's, and is passed over.)
4. LINKCHECK_BUNDLED_EXTENSION_CUDA=ON: the library that comes with linkcheck.

Afterwards there are two targets:

    linkcheck::extension_cuda   what to link: the library, and ExecuTorch's caller_stream.h if the library brings none
    extension_cuda              the library itself, for $<TARGET_FILE:extension_cuda> and install()

Whoever declares `extension_cuda` once more is stopped by CMake, and an `executorch::extension_cuda` that turns up later
and is another library is found when configuration ends: that would be two copies of the state in one program.

Properties of linkcheck::extension_cuda: LINKCHECK_ORIGIN (existing-target, prebuilt, executorch-source, bundled) and
LINKCHECK_LIBRARY_TARGET (the name of the SHARED library behind it). A second call changes nothing.
]=]
include_guard(GLOBAL)
cmake_policy(VERSION 3.28...4.0)
include("${CMAKE_CURRENT_LIST_DIR}/detail/linkcheck_use_existing_extension_cuda.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/detail/linkcheck_use_prebuilt_extension_cuda.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/detail/linkcheck_use_executorch_source.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/detail/linkcheck_use_bundled_extension_cuda.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/detail/linkcheck_find_executorch_source.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/detail/linkcheck_publish_extension_cuda.cmake")

function(linkcheck_select_extension_cuda)
    if(ARGC GREATER 0)
        message(FATAL_ERROR "linkcheck_select_extension_cuda: unknown arguments: ${ARGN}")
    elseif(TARGET linkcheck::extension_cuda)
        return()
    endif()
    option(LINKCHECK_BUNDLED_EXTENSION_CUDA "Build linkcheck's libextension_cuda.so when no other is given" OFF)

    linkcheck_find_executorch_source(source source_option)
    if(TARGET extension_cuda OR TARGET executorch::extension_cuda)
        set(origin existing-target)
        linkcheck_use_existing_extension_cuda(linked library)
    elseif(DEFINED EXECUTORCH_EXTENSION_CUDA_LIBRARY)
        set(origin prebuilt)
        linkcheck_use_prebuilt_extension_cuda(linked library)
    elseif(source_option)
        set(origin executorch-source)
        linkcheck_use_executorch_source("${source}" "${source_option}" linked library)
    elseif(LINKCHECK_BUNDLED_EXTENSION_CUDA)
        set(origin bundled)
        linkcheck_use_bundled_extension_cuda(linked library)
    else()
        message(
            FATAL_ERROR
                "linkcheck: no libextension_cuda.so was given. Every CUDA delegate of a program must share one, so "
                "say which, in one of four ways:\n"
                "  1. a target: find_package(executorch) or add_subdirectory(executorch) with EXECUTORCH_BUILD_CUDA=ON, "
                "before linkcheck_select_extension_cuda()\n"
                "  2. -DEXECUTORCH_EXTENSION_CUDA_LIBRARY=<path of a prebuilt libextension_cuda.so>\n"
                "  3. -DEXECUTORCH_SOURCE_DIR=<an ExecuTorch checkout> (or EXECUTORCH_ROOT)\n"
                "  4. -DLINKCHECK_BUNDLED_EXTENSION_CUDA=ON, the one that comes with linkcheck")
    endif()

    if(origin STREQUAL "existing-target")
        foreach(option IN ITEMS EXECUTORCH_EXTENSION_CUDA_LIBRARY ${source_option})
            if(DEFINED ${option})
                message(STATUS "linkcheck: ${option} is not used: the target ${linked} is there already")
            endif()
        endforeach()
    endif()
    linkcheck_publish_extension_cuda("${linked}" "${library}" "${origin}")
endfunction()
