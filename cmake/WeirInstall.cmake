# Installs Weir in three components, docs/install.md: runtime and development need no LLVM.
#
# Nothing that is installed names an absolute path of its own prefix, so the prefix can be moved.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# weir_from(<variable> <folder>): sets the relative path from an installed folder to the prefix.
function(weir_from variable folder)
  file(RELATIVE_PATH path "/prefix/${folder}" /prefix)
  string(REGEX REPLACE "/$" "" path "${path}")
  set(${variable} "${path}" PARENT_SCOPE)
endfunction()
weir_from(WEIR_FROM_BIN "${CMAKE_INSTALL_BINDIR}")

# weir_install(<component> <targets...>): installs programs and libraries. They find Weir's library
# in the prefix, and LLVM's where this build found them.
function(weir_install component)
  set_target_properties(${ARGN} PROPERTIES
    INSTALL_RPATH "$ORIGIN/${WEIR_FROM_BIN}/${CMAKE_INSTALL_LIBDIR}" INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS ${ARGN}
    RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT ${component}
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT ${component})
endfunction()

#===- runtime -------------------------------------------------------------===#

weir_install(runtime weir-device VkLayer_weir_audit)
install(TARGETS weir_runtime EXPORT WeirTargets
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT runtime NAMELINK_COMPONENT development
  INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(FILES LICENSE CHANGELOG.md DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT runtime)

# Vulkan's loader resolves a relative path in a manifest against the manifest's folder.
set(layers "${CMAKE_INSTALL_DATADIR}/vulkan/explicit_layer.d")
weir_from(from_layers "${layers}")
weir_write_audit_manifest("${CMAKE_BINARY_DIR}/share/vulkan/VkLayer_weir_audit.json"
  "${from_layers}/${CMAKE_INSTALL_LIBDIR}/$<TARGET_FILE_NAME:VkLayer_weir_audit>")
install(FILES "${CMAKE_BINARY_DIR}/share/vulkan/VkLayer_weir_audit.json"
  DESTINATION "${layers}" COMPONENT runtime)

#===- development ---------------------------------------------------------===#

install(FILES include/weir/weir.h
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/weir" COMPONENT development)

set(pkgconfig "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
weir_from(WEIR_FROM_PKGCONFIG "${pkgconfig}")
configure_file(cmake/weir.pc.in "${CMAKE_BINARY_DIR}/share/weir.pc" @ONLY)
install(FILES "${CMAKE_BINARY_DIR}/share/weir.pc" DESTINATION "${pkgconfig}" COMPONENT development)

set(package "${CMAKE_INSTALL_LIBDIR}/cmake/Weir")
configure_package_config_file(cmake/WeirConfig.cmake.in "${CMAKE_BINARY_DIR}/share/WeirConfig.cmake"
  INSTALL_DESTINATION "${package}" NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor version may change what weir.h declares.
write_basic_package_version_file("${CMAKE_BINARY_DIR}/share/WeirConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_BINARY_DIR}/share/WeirConfig.cmake" "${CMAKE_BINARY_DIR}/share/WeirConfigVersion.cmake"
  DESTINATION "${package}" COMPONENT development)
install(EXPORT WeirTargets NAMESPACE Weir:: DESTINATION "${package}" COMPONENT development)

#===- compiler ------------------------------------------------------------===#

if(WEIR_COMPILER)
  weir_install(compiler weir weir-opt weir-lsp-server WeirPlugin)
  # Built by a target of their own, not by the default one.
  install(DIRECTORY "${CMAKE_BINARY_DIR}/share/man/" DESTINATION "${CMAKE_INSTALL_MANDIR}"
    COMPONENT compiler OPTIONAL)
  foreach(shell bash-completion zsh fish)
    install(DIRECTORY "${CMAKE_BINARY_DIR}/share/${shell}" DESTINATION "${CMAKE_INSTALL_DATADIR}"
      COMPONENT compiler OPTIONAL)
  endforeach()
endif()
