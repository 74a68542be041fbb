# linkcheck_native_target(<target>)
#
# What every target of this folder has in common: C++17, hidden visibility, warnings, sanitizers. It changes the named
# target only; consumers inherit nothing.
include_guard(GLOBAL)

function(linkcheck_native_target target)
    if(ARGC GREATER 1)
        message(FATAL_ERROR "linkcheck_native_target: unknown arguments: ${ARGN}")
    endif()
    target_compile_features(${target} PRIVATE cxx_std_17)
    set_target_properties(
        ${target}
        PROPERTIES CXX_EXTENSIONS OFF
                   CXX_VISIBILITY_PRESET hidden
                   VISIBILITY_INLINES_HIDDEN ON
                   POSITION_INDEPENDENT_CODE ON)
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor)
    if(LINKCHECK_WARNINGS_AS_ERRORS)
        set_target_properties(${target} PROPERTIES COMPILE_WARNING_AS_ERROR ON)
    endif()
    if(LINKCHECK_SANITIZE)
        # no-recover: a finding must fail the test, not scroll by.
        target_compile_options(
            ${target} PRIVATE -fsanitize=${LINKCHECK_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
        target_link_options(${target} PRIVATE -fsanitize=${LINKCHECK_SANITIZE})
    endif()
endfunction()
