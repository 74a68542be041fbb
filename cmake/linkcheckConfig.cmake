# find_package(linkcheck): defines every linkcheck_ function below, and nothing else but
#
#   linkcheck_MODULE_PATH   this folder, for list(APPEND CMAKE_MODULE_PATH ...): FindTensorRT.cmake lives here
#
# `linkcheck cmake-dir` prints the folder, so -Dlinkcheck_DIR="$(linkcheck cmake-dir)" finds it from any project.

# The modules ask for the policies of 3.28: an older CMake would say so once for each of them.
if(CMAKE_VERSION VERSION_LESS 3.28)
    set(linkcheck_FOUND FALSE)
    set(linkcheck_NOT_FOUND_MESSAGE
        "linkcheck needs CMake 3.28 or newer, and this is ${CMAKE_VERSION}: `pip install cmake` brings one.")
    return()
endif()

set(linkcheck_MODULE_PATH "${CMAKE_CURRENT_LIST_DIR}")

include("${CMAKE_CURRENT_LIST_DIR}/linkcheck_find_command.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/linkcheck_validate_prebuilt.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/linkcheck_select_extension_cuda.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/linkcheck_add_gate.cmake")
