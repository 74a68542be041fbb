# The version that find_package(linkcheck <version>) compares; tests keep it equal to the Python package's.
set(PACKAGE_VERSION "0.1.0")

# Before 1.0 a minor version may change what a function does, so only the same one is compatible.
if(PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)
    set(PACKAGE_VERSION_COMPATIBLE FALSE)
elseif("${PACKAGE_FIND_VERSION_MAJOR}.${PACKAGE_FIND_VERSION_MINOR}" VERSION_EQUAL "0.1"
       OR (PACKAGE_FIND_VERSION_COUNT EQUAL 1 AND PACKAGE_FIND_VERSION_MAJOR EQUAL 0)
       OR PACKAGE_FIND_VERSION_COUNT EQUAL 0)
    set(PACKAGE_VERSION_COMPATIBLE TRUE)
    if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
        set(PACKAGE_VERSION_EXACT TRUE)
    endif()
else()
    set(PACKAGE_VERSION_COMPATIBLE FALSE)
endif()
