#[=[
linkcheck_publish_extension_cuda(<linked> <library> <origin>)

Declares linkcheck::extension_cuda over the chosen target <linked>, takes the name `extension_cuda` for the SHARED
library <library> behind it if it is free, and has the end of configuration look for a second library.
]=]
include_guard(GLOBAL)
cmake_policy(VERSION 3.28...4.0)
include("${CMAKE_CURRENT_LIST_DIR}/linkcheck_resolve_shared_library.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/linkcheck_refuse_second_extension_cuda.cmake")

function(linkcheck_publish_extension_cuda linked library origin)
    # Where the chosen target is visible in one directory and below only, so is ours: elsewhere its name would reach the
    # linker as -lextension_cuda, and find another library or none.
    set(global GLOBAL)
    foreach(target IN ITEMS ${linked} ${library})
        get_target_property(imported ${target} IMPORTED)
        get_target_property(imported_global ${target} IMPORTED_GLOBAL)
        if(imported AND NOT imported_global)
            set(global "")
        endif()
    endforeach()

    cmake_path(SET include_directory NORMALIZE
               "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../../native/caller_stream/include")
    # After the chosen library, so that its own header is the one that is found. Ours only fills the place where a
    # prebuilt library or a wheel brings none; the two are interchangeable.
    add_library(linkcheck::caller_stream_header INTERFACE IMPORTED ${global})
    target_include_directories(linkcheck::caller_stream_header SYSTEM INTERFACE "${include_directory}")
    target_compile_features(linkcheck::caller_stream_header INTERFACE cxx_std_17)

    add_library(linkcheck::extension_cuda INTERFACE IMPORTED ${global})
    target_link_libraries(linkcheck::extension_cuda INTERFACE ${linked} linkcheck::caller_stream_header)
    set_target_properties(
        linkcheck::extension_cuda PROPERTIES LINKCHECK_ORIGIN ${origin} LINKCHECK_LIBRARY_TARGET ${library})

    # Taken, the name stops whoever would declare a second library under it.
    if(NOT TARGET extension_cuda)
        add_library(extension_cuda ALIAS ${library})
    endif()
    # EVAL, because a deferred call expands its arguments when it runs, and these are this function's variables.
    cmake_language(EVAL CODE "cmake_language(DEFER CALL linkcheck_refuse_second_extension_cuda [[${library}]])")
endfunction()
