# Packs a wheel from the build tree WEIR_PREBUILT, without compiling: installs its components.

foreach(component runtime compiler)
  install(CODE "
    execute_process(COMMAND \"${CMAKE_COMMAND}\" --install \"${WEIR_PREBUILT}\" --strip
      --component ${component} --prefix \"\${CMAKE_INSTALL_PREFIX}\" COMMAND_ERROR_IS_FATAL ANY)"
    COMPONENT ${component})
endforeach()
# A wheel holds no links: the file takes the name of the link that programs ask for.
install(CODE "
  file(GLOB library \"\${CMAKE_INSTALL_PREFIX}/lib/libweir_runtime.so.*.*\")
  file(RENAME \"\${library}\" \"\${CMAKE_INSTALL_PREFIX}/lib/libweir_runtime.so.0\")"
  COMPONENT runtime)
