#[=[
find_package(TensorRT [<version>] [REQUIRED] [MODULE] [COMPONENTS nvinfer|tensorrt_rtx])

Finds one TensorRT: headers, and libnvinfer or (component tensorrt_rtx) TensorRT for RTX's libtensorrt_rtx.

Where:
    TensorRT_ROOT          an SDK: include/ and lib/ (or targets/*/lib); a variable of CMake or the environment
    TensorRT_INCLUDE_DIR   the folder of NvInfer.h, when the headers are somewhere else
    TensorRT_LIBRARY       the library's file, when it is somewhere else
    system packages        the machine's own folders, and the target machine's in a cross build
    wheels                 the folder of the tensorrt_libs (or tensorrt_rtx_libs) package as TensorRT_ROOT: it has no
                           headers and no libnvinfer.so, only libnvinfer.so.N, so give TensorRT_INCLUDE_DIR as well

Sets TensorRT_FOUND, TensorRT_VERSION (of the headers), TensorRT_INCLUDE_DIRS, TensorRT_LIBRARIES and defines

    TensorRT::TensorRT       the library that was found, an IMPORTED SHARED target; its headers count as SYSTEM ones
    TensorRT::nvinfer        the same, when it is libnvinfer
    TensorRT::tensorrt_rtx   the same, when it is libtensorrt_rtx

Headers of one major version and a library of another are not a TensorRT: the vtables differ, and the program would
crash in its first call. The library's version is read from its file name, where it says one.
]=]
cmake_policy(VERSION 3.28...4.0)
include(FindPackageHandleStandardArgs)

set(_trt_library nvinfer)
set(_trt_reason "")
if(TensorRT_FIND_COMPONENTS)
    set(_trt_library ${TensorRT_FIND_COMPONENTS})
    if(NOT _trt_library MATCHES "^(nvinfer|tensorrt_rtx)$")
        message(FATAL_ERROR "FindTensorRT: COMPONENTS takes nvinfer or tensorrt_rtx, one of them; got ${_trt_library}")
    endif()
endif()

# A wheel's library has its version in its name and no link without it: those are found last, newest first.
set(_trt_names ${_trt_library})
foreach(_trt_major RANGE 19 1 -1)
    list(APPEND _trt_names lib${_trt_library}.so.${_trt_major})
endforeach()

find_path(
    TensorRT_INCLUDE_DIR NvInfer.h
    PATH_SUFFIXES include targets/${CMAKE_SYSTEM_PROCESSOR}-linux-gnu/include
    DOC "The folder of TensorRT's NvInfer.h")
find_library(
    TensorRT_LIBRARY
    NAMES ${_trt_names} NAMES_PER_DIR
    HINTS "${TensorRT_ROOT}" "$ENV{TensorRT_ROOT}" # a wheel's folder has the library in it, not in its lib/
    PATH_SUFFIXES lib targets/${CMAKE_SYSTEM_PROCESSOR}-linux-gnu/lib
    DOC "TensorRT's library")
mark_as_advanced(TensorRT_INCLUDE_DIR TensorRT_LIBRARY)

# NvInferVersion.h states NV_TENSORRT_MAJOR as a number in older versions, through TRT_MAJOR_ENTERPRISE in newer ones, and
# TensorRT for RTX, whose own numbers start at 1, has TRT_MAJOR_RTX.
set(TensorRT_VERSION "")
if(TensorRT_INCLUDE_DIR AND EXISTS "${TensorRT_INCLUDE_DIR}/NvInferVersion.h")
    file(STRINGS "${TensorRT_INCLUDE_DIR}/NvInferVersion.h" _trt_lines REGEX "^#define (NV_TENSORRT|TRT)_[A-Z_]+ ")
    set(_trt_numbers "")
    foreach(_trt_part IN ITEMS MAJOR MINOR PATCH)
        set(_trt_word NV_TENSORRT_${_trt_part})
        if(_trt_library STREQUAL "tensorrt_rtx" AND _trt_lines MATCHES "#define TRT_${_trt_part}_RTX ")
            set(_trt_word TRT_${_trt_part}_RTX)
        endif()
        # One step from a name to a number, or two through another name.
        foreach(_trt_step IN ITEMS 1 2)
            if(_trt_lines MATCHES "#define ${_trt_word} +([A-Z0-9_]+)")
                set(_trt_word "${CMAKE_MATCH_1}")
            endif()
        endforeach()
        if(_trt_word MATCHES "^[0-9]+$")
            list(APPEND _trt_numbers ${_trt_word})
        endif()
    endforeach()
    list(LENGTH _trt_numbers _trt_count)
    if(_trt_count EQUAL 3)
        list(JOIN _trt_numbers "." TensorRT_VERSION)
    else()
        set(_trt_reason "${TensorRT_INCLUDE_DIR}/NvInferVersion.h states no version that could be read")
    endif()
elseif(TensorRT_INCLUDE_DIR)
    set(_trt_reason "${TensorRT_INCLUDE_DIR} has NvInfer.h and no NvInferVersion.h")
endif()

if(TensorRT_LIBRARY AND TensorRT_VERSION)
    file(REAL_PATH "${TensorRT_LIBRARY}" _trt_real)
    if(_trt_real MATCHES "\\.so\\.([0-9]+)[^/]*$")
        set(_trt_major ${CMAKE_MATCH_1})
        if(NOT TensorRT_VERSION MATCHES "^${_trt_major}\\.")
            set(_trt_reason "headers and library differ: ${TensorRT_INCLUDE_DIR} is ${TensorRT_VERSION}, \
${_trt_real} is ${_trt_major}")
        endif()
    endif()
endif()

if(_trt_reason)
    set(TensorRT_HEADERS_FIT_LIBRARY FALSE)
else()
    set(TensorRT_HEADERS_FIT_LIBRARY TRUE)
endif()
find_package_handle_standard_args(
    TensorRT
    REQUIRED_VARS TensorRT_LIBRARY TensorRT_INCLUDE_DIR TensorRT_VERSION TensorRT_HEADERS_FIT_LIBRARY
    VERSION_VAR TensorRT_VERSION
    REASON_FAILURE_MESSAGE "${_trt_reason}")

if(TensorRT_FOUND)
    set(TensorRT_INCLUDE_DIRS "${TensorRT_INCLUDE_DIR}")
    set(TensorRT_LIBRARIES TensorRT::TensorRT)
    if(NOT TARGET TensorRT::TensorRT)
        add_library(TensorRT::TensorRT SHARED IMPORTED)
        set_target_properties(
            TensorRT::TensorRT
            PROPERTIES IMPORTED_LOCATION "${TensorRT_LIBRARY}"
                       INTERFACE_INCLUDE_DIRECTORIES "${TensorRT_INCLUDE_DIR}")
        if(NOT TARGET TensorRT::${_trt_library})
            add_library(TensorRT::${_trt_library} ALIAS TensorRT::TensorRT)
        endif()
    endif()
endif()

foreach(_trt_variable IN ITEMS library names major lines numbers part word step count real reason)
    unset(_trt_${_trt_variable})
endforeach()
unset(_trt_variable)
unset(TensorRT_HEADERS_FIT_LIBRARY)
