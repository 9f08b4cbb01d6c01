# Two kinds of library: weir_library builds without LLVM, weir_mlir_library on it.
#
# The release preset compiles up to eight sources of a target as one file (CMAKE_UNITY_BUILD),
# so file-local names differ within a target.

# weir_library(<name> <sources...> [LINK <libraries...>])
function(weir_library name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
endfunction()

if(NOT WEIR_COMPILER)
  return()
endif()

# The headers that nearly every MLIR file includes, compiled once.
file(WRITE "${CMAKE_BINARY_DIR}/pch.cpp.in" "")
configure_file("${CMAKE_BINARY_DIR}/pch.cpp.in" "${CMAKE_BINARY_DIR}/pch.cpp" COPYONLY)
separate_arguments(WEIR_LLVM_DEFINITIONS NATIVE_COMMAND "${LLVM_DEFINITIONS}")
add_library(WeirPch OBJECT "${CMAKE_BINARY_DIR}/pch.cpp")
target_include_directories(WeirPch SYSTEM PUBLIC ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
target_compile_definitions(WeirPch PUBLIC ${WEIR_LLVM_DEFINITIONS})
set_target_properties(WeirPch PROPERTIES POSITION_INDEPENDENT_CODE OFF)
target_compile_options(WeirPch PRIVATE -fPIC)
target_precompile_headers(WeirPch PRIVATE "${CMAKE_SOURCE_DIR}/cmake/pch.h")

function(weir_use_mlir name)
  target_include_directories(${name} SYSTEM PUBLIC ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
  target_compile_definitions(${name} PUBLIC ${WEIR_LLVM_DEFINITIONS})
  target_precompile_headers(${name} REUSE_FROM WeirPch)
  # The header was compiled as for a library; executables must not differ.
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fPIC)
endfunction()

# weir_mlir_library(<name> <sources...> [LINK <libraries...>] [DEPENDS <targets...>])
function(weir_mlir_library name)
  cmake_parse_arguments(ARG "" "" "LINK;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  weir_use_mlir(${name})
  target_link_libraries(${name} PUBLIC ${ARG_LINK} MLIR LLVM)
  add_dependencies(${name} WeirTablegen ${ARG_DEPENDS})
endfunction()

# All generated headers, so that no library compiles before them.
add_custom_target(WeirTablegen)

# weir_tablegen(<target> <td file> <output> <generator flags...> ...), pairs of
# output and flags, each pair separated by a comma-free list element.
macro(weir_tablegen td)
  set(LLVM_TARGET_DEFINITIONS ${td})
  set(_weir_tablegen_pairs ${ARGN})
  list(LENGTH _weir_tablegen_pairs _count)
  math(EXPR _last "${_count} - 1")
  set(TABLEGEN_OUTPUT)
  foreach(_i RANGE 0 ${_last} 2)
    math(EXPR _j "${_i} + 1")
    list(GET _weir_tablegen_pairs ${_i} _out)
    list(GET _weir_tablegen_pairs ${_j} _flags)
    separate_arguments(_flags)
    mlir_tablegen(${_out} ${_flags} EXTRA_INCLUDES ${MLIR_INCLUDE_DIRS} ${CMAKE_SOURCE_DIR})
  endforeach()
  get_filename_component(_stem ${td} NAME_WE)
  file(RELATIVE_PATH _where "${CMAKE_SOURCE_DIR}" "${CMAKE_CURRENT_SOURCE_DIR}")
  string(REPLACE "/" "_" _where "${_where}")
  add_custom_target(Tablegen_${_where}_${_stem} DEPENDS ${TABLEGEN_OUTPUT})
  add_dependencies(WeirTablegen Tablegen_${_where}_${_stem})
endmacro()
