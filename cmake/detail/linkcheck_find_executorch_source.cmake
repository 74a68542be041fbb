#[=[
linkcheck_find_executorch_source(<path-var> <option-var>)

Sets <option-var> to the name of the variable that gives an ExecuTorch checkout, EXECUTORCH_SOURCE_DIR or
EXECUTORCH_ROOT, and <path-var> to its value; both empty when neither does. Does not look whether the checkout is usable.
]=]
include_guard(GLOBAL)
cmake_policy(VERSION 3.28...4.0)

function(linkcheck_find_executorch_source path_var option_var)
    set(${path_var} "" PARENT_SCOPE)
    set(${option_var} "" PARENT_SCOPE)
    if(DEFINED EXECUTORCH_SOURCE_DIR)
        set(option EXECUTORCH_SOURCE_DIR)
    elseif(DEFINED EXECUTORCH_ROOT)
        # CMake itself reads this variable: find_package(executorch) searches it (CMP0144). Where an installed package
        # is in it, it was set for that, and is no request to build ExecuTorch's sources.
        file(GLOB installed
             "${EXECUTORCH_ROOT}/share/cmake/executorch-config.cmake"
             "${EXECUTORCH_ROOT}/lib*/cmake/[Ee]xecu[Tt]orch/executorch-config.cmake")
        if(EXECUTORCH_ROOT AND installed)
            message(STATUS "linkcheck: EXECUTORCH_ROOT holds an installed ExecuTorch, so no source of extension_cuda")
            return()
        endif()
        set(option EXECUTORCH_ROOT)
    else()
        return()
    endif()
    set(${path_var} "${${option}}" PARENT_SCOPE)
    set(${option_var} ${option} PARENT_SCOPE)
endfunction()
