#[=[
find_package(CudaRuntime [REQUIRED] [MODULE])

Finds the CUDA runtime library and its headers; no compiler is needed.

Where:
    CudaRuntime_ROOT          a folder with include/ and lib/ or lib64/: a toolkit, or nvidia/cu13 of the wheels
                              nvidia-cuda-runtime and nvidia-cuda-crt
    CudaRuntime_INCLUDE_DIR   the folder of cuda_runtime_api.h, when it is somewhere else
    CudaRuntime_LIBRARY       libcudart's file, when it is somewhere else
    /usr/local/cuda           when nothing is given, and the system's own folders

Defines CudaRuntime::cudart, an IMPORTED SHARED target whose headers count as SYSTEM ones, and CudaRuntime_VERSION.
FindCUDAToolkit is not used because it wants a whole toolkit, and a wheel has no libcudart.so, only libcudart.so.N.
]=]
include(FindPackageHandleStandardArgs)

find_path(CudaRuntime_INCLUDE_DIR cuda_runtime_api.h HINTS /usr/local/cuda PATH_SUFFIXES include)
find_library(
    CudaRuntime_LIBRARY
    NAMES cudart libcudart.so.13 libcudart.so.12 NAMES_PER_DIR # a wheel given as root comes before a toolkit
    HINTS /usr/local/cuda
    PATH_SUFFIXES lib64 lib)
mark_as_advanced(CudaRuntime_INCLUDE_DIR CudaRuntime_LIBRARY)

if(CudaRuntime_INCLUDE_DIR)
    # CUDART_VERSION is 1000 * major + 10 * minor.
    file(STRINGS "${CudaRuntime_INCLUDE_DIR}/cuda_runtime_api.h" version_line REGEX "^#define CUDART_VERSION +[0-9]+")
    if(version_line MATCHES "([0-9]+)$")
        math(EXPR major "${CMAKE_MATCH_1} / 1000")
        math(EXPR minor "${CMAKE_MATCH_1} % 1000 / 10")
        set(CudaRuntime_VERSION "${major}.${minor}")
    endif()
endif()

find_package_handle_standard_args(
    CudaRuntime
    REQUIRED_VARS CudaRuntime_LIBRARY CudaRuntime_INCLUDE_DIR
    VERSION_VAR CudaRuntime_VERSION)

if(CudaRuntime_FOUND AND NOT TARGET CudaRuntime::cudart)
    add_library(CudaRuntime::cudart SHARED IMPORTED)
    set_target_properties(
        CudaRuntime::cudart
        PROPERTIES IMPORTED_LOCATION "${CudaRuntime_LIBRARY}"
                   INTERFACE_INCLUDE_DIRECTORIES "${CudaRuntime_INCLUDE_DIR}")
endif()
