#[=[
linkcheck_compare_libraries(<one> <other> <same-var>)

Sets <same-var> to whether linking both of these SHARED libraries brings one file into a program: they are one target, or
imported from one file. Two targets whose files are links to one file are the same, as they are to ld.so.
]=]
include_guard(GLOBAL)
cmake_policy(VERSION 3.28...4.0)
include("${CMAKE_CURRENT_LIST_DIR}/linkcheck_list_imported_files.cmake")

function(linkcheck_compare_libraries one other same_var)
    set(same FALSE)
    if(one STREQUAL other)
        set(same TRUE)
    else()
        foreach(library IN ITEMS one other)
            set(real_${library} "")
            linkcheck_list_imported_files(${${library}} files)
            foreach(file IN LISTS files)
                file(REAL_PATH "${file}" real)
                list(APPEND real_${library} "${real}")
            endforeach()
            list(REMOVE_DUPLICATES real_${library})
            list(SORT real_${library})
        endforeach()
        if(real_one AND real_one STREQUAL "${real_other}")
            set(same TRUE)
        endif()
    endif()
    set(${same_var} ${same} PARENT_SCOPE)
endfunction()
