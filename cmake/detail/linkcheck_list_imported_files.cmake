#[=[
linkcheck_list_imported_files(<library> <files-var>)

Sets <files-var> to the files that the IMPORTED library <library> names, of any configuration, as they are written there;
empty for a library of this build.
]=]
include_guard(GLOBAL)
cmake_policy(VERSION 3.28...4.0)

function(linkcheck_list_imported_files library files_var)
    set(files "")
    get_target_property(imported ${library} IMPORTED)
    if(imported)
        get_target_property(configurations ${library} IMPORTED_CONFIGURATIONS)
        if(NOT configurations)
            set(configurations "")
        endif()
        list(TRANSFORM configurations PREPEND "IMPORTED_LOCATION_")
        foreach(property IN LISTS configurations ITEMS IMPORTED_LOCATION)
            get_target_property(file ${library} ${property})
            if(file)
                list(APPEND files "${file}")
            endif()
        endforeach()
        list(REMOVE_DUPLICATES files)
    endif()
    set(${files_var} "${files}" PARENT_SCOPE)
endfunction()
