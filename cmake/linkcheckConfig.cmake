# find_package(linkcheck): defines every linkcheck_ function below, and nothing else but
#
#   linkcheck_MODULE_PATH   this folder, for list(APPEND CMAKE_MODULE_PATH ...): FindTensorRT.cmake lives here
#
# `linkcheck cmake-dir` prints the folder, so -Dlinkcheck_DIR="$(linkcheck cmake-dir)" finds it from any project.
set(linkcheck_MODULE_PATH "${CMAKE_CURRENT_LIST_DIR}")

include("${CMAKE_CURRENT_LIST_DIR}/linkcheck_find_command.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/linkcheck_validate_prebuilt.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/linkcheck_select_extension_cuda.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/linkcheck_add_gate.cmake")
