#[=[
linkcheck_resolve_shared_library(<target> <library-var>)

Sets <library-var> to the SHARED (or IMPORTED SHARED) library that linking <target> brings in: <target> itself, what it
is an alias of, or the one library behind an INTERFACE. Ends configuration for every other type, since a static, object
or module library would give each file that links it its own state, or cannot be linked.
]=]
include_guard(GLOBAL)
cmake_policy(VERSION 3.28...4.0)

function(linkcheck_resolve_shared_library target library_var)
    set(name ${target})
    set(seen "")
    while(TRUE)
        get_target_property(aliased ${name} ALIASED_TARGET)
        if(aliased)
            set(name ${aliased})
        endif()
        get_target_property(type ${name} TYPE)
        if(NOT type STREQUAL "INTERFACE_LIBRARY")
            break()
        elseif(name IN_LIST seen)
            message(FATAL_ERROR "linkcheck: the target ${target} leads to itself: ${seen}")
        endif()
        list(APPEND seen ${name})

        get_target_property(sources ${name} INTERFACE_SOURCES)
        if(sources)
            message(
                FATAL_ERROR
                    "linkcheck: the target ${target} compiles ${sources} into every file that links it, so each has "
                    "its own caller stream. Build them as one SHARED library.")
        endif()
        get_target_property(items ${name} INTERFACE_LINK_LIBRARIES)
        set(targets "")
        foreach(item IN LISTS items)
            string(REGEX REPLACE "^\\$<(LINK_ONLY|BUILD_INTERFACE|BUILD_LOCAL_INTERFACE):(.*)>$" "\\2" item "${item}")
            if(TARGET "${item}" AND NOT item MATCHES "^CUDA::")
                list(APPEND targets "${item}")
            endif()
        endforeach()
        # An INTERFACE may bring its own dependencies along; the one that is called like the library is meant.
        set(namesakes ${targets})
        list(FILTER namesakes INCLUDE REGEX "extension_cuda")
        if(namesakes)
            set(targets ${namesakes})
        endif()
        list(REMOVE_DUPLICATES targets)
        list(LENGTH targets count)
        if(NOT count EQUAL 1)
            message(
                FATAL_ERROR
                    "linkcheck: the target ${target} is an INTERFACE library, and of what it links (${items}) not "
                    "exactly one is the target of a shared library. Declare the library SHARED IMPORTED.")
        endif()
        set(name ${targets})
    endwhile()

    if(NOT type STREQUAL "SHARED_LIBRARY")
        set(behind "")
        if(NOT name STREQUAL target)
            set(behind " (${name})")
        endif()
        message(
            FATAL_ERROR
                "linkcheck: the target ${target}${behind} is a ${type}; it must be a SHARED library, or IMPORTED "
                "SHARED. Any other is copied into each file that links it, and each copy has its own caller stream.")
    endif()
    set(${library_var} ${name} PARENT_SCOPE)
endfunction()
