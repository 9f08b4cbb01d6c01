# Finds everything Weir builds against. Debian installs LLVM 22 beside other
# versions under /usr/lib/llvm-22, so that place is searched without being asked.

option(WEIR_COMPILER "Build the compiler and all tests, which need LLVM and MLIR 22; OFF builds the runtime and weir-device" ON)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")

# weir_require(<what> <debian package> <found variable>)
function(weir_require what package found)
  if(NOT ${found})
    message(FATAL_ERROR "${what} not found. Install Debian's package ${package} (scripts/setup does).")
  endif()
endfunction()

find_package(nlohmann_json QUIET)
weir_require("nlohmann-json" nlohmann-json3-dev nlohmann_json_FOUND)
find_package(simdjson QUIET)
weir_require("simdjson" libsimdjson-dev simdjson_FOUND)
find_package(CLI11 QUIET)
weir_require("CLI11" libcli11-dev CLI11_FOUND)
find_path(LIBZIP_INCLUDE_DIR zip.h)
find_library(LIBZIP_LIBRARY zip)
weir_require("libzip" libzip-dev LIBZIP_LIBRARY)
find_path(VULKAN_INCLUDE_DIR vulkan/vulkan.h)
weir_require("The Vulkan headers" libvulkan-dev VULKAN_INCLUDE_DIR)
# Without it the runtime and weir-device are built, too; `weir-device verify` then takes from the compiler that
# SPIR-V is valid.
find_path(SPIRV_TOOLS_INCLUDE_DIR spirv-tools/libspirv.h)
find_library(SPIRV_TOOLS_LIBRARY SPIRV-Tools)
find_package(Python3 COMPONENTS Interpreter QUIET)
weir_require("Python 3" python3 Python3_FOUND)

if(WEIR_COMPILER)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "Weir's compiler is built with clang 22, found ${CMAKE_CXX_COMPILER}. "
      "Install Debian's package clang-22 and configure with a preset (cmake --preset release), "
      "or build the runtime alone with -DWEIR_COMPILER=OFF.")
  endif()

  find_package(MLIR 22.1 CONFIG PATHS /usr/lib/llvm-22/lib/cmake/mlir QUIET)
  if(NOT MLIR_FOUND)
    message(FATAL_ERROR "MLIR 22.1 not found. Install Debian's packages libmlir-22-dev, mlir-22-tools, "
      "llvm-22-dev and llvm-22-tools (scripts/setup does), set MLIR_DIR to the folder of MLIRConfig.cmake, "
      "or build the runtime alone with -DWEIR_COMPILER=OFF.")
  endif()
  list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
  include(TableGen)
  include(AddLLVM)
  include(AddMLIR)

  find_package(LLD CONFIG PATHS "${LLVM_CMAKE_DIR}/../lld" NO_DEFAULT_PATH QUIET)
  weir_require("The lld libraries" liblld-22-dev LLD_FOUND)
  set(LLD_LIBRARIES lldELF lldCommon)
  find_package(GTest QUIET)
  weir_require("googletest" libgtest-dev GTest_FOUND)
  weir_require("The SPIRV-Tools library" spirv-tools SPIRV_TOOLS_LIBRARY)
  add_link_options(-fuse-ld=lld-22)
else()
  # Older clangs refuse to capture structured bindings.
  foreach(oldest "GNU 12" "Clang 16")
    separate_arguments(oldest)
    list(GET oldest 1 version)
    if(CMAKE_CXX_COMPILER_ID IN_LIST oldest AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS version)
      message(FATAL_ERROR "Weir's runtime is built with GCC 12, clang 16 or a later one, "
        "found ${CMAKE_CXX_COMPILER} ${CMAKE_CXX_COMPILER_VERSION}. Name another one by the environment variable CXX.")
    endif()
  endforeach()
endif()

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # A precompiled header carries its own time stamps; without this every use of it misses.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
endif()

# Warnings are errors with the one compiler that builds all of Weir. The runtime is also built
# with others, which warn of more.
if(WEIR_COMPILER)
  set(werror -Werror)
endif()
add_compile_options(-Wall -Wextra ${werror} -Wno-unused-parameter)
option(WEIR_SANITIZE "Build with AddressSanitizer and UndefinedBehaviorSanitizer" OFF)
if(WEIR_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize=vptr -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  add_link_options(-fsanitize=address,undefined)
endif()

include_directories("${CMAKE_SOURCE_DIR}" "${CMAKE_SOURCE_DIR}/include" "${CMAKE_BINARY_DIR}")
