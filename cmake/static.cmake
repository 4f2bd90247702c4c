# What a program consists of, and where it is linked statically (THIMBLE_STATIC): without OpenBLAS, with fmt in headers, with
# yaml-cpp's static library, and with its own choice of instruction sets, as Debian has no static library of Highway.

# Newer yaml-cpp exports a namespaced target only.
set(engine_libraries fmt::fmt PkgConfig::openblas PkgConfig::hwy)
set(yaml_cpp $<IF:$<TARGET_EXISTS:yaml-cpp::yaml-cpp>,yaml-cpp::yaml-cpp,yaml-cpp>)
set(not_in_this_build "/(backend_missing|cpu_targets_dispatch)\\.cpp$")
if(EMSCRIPTEN)
  set(not_in_this_build "${THIMBLE_NOT_IN_LAB}")
elseif(THIMBLE_STATIC)
  add_library(fmt_headers INTERFACE IMPORTED)
  target_compile_definitions(fmt_headers INTERFACE FMT_HEADER_ONLY)
  set(engine_libraries fmt_headers)
  find_library(yaml_cpp_archive libyaml-cpp.a HINTS $ENV{SYSROOT}/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE} REQUIRED)
  set(yaml_cpp ${yaml_cpp_archive})
  set(not_in_this_build "/products/backend\\.cpp$|/cli/blas_threads\\.cpp$")
  set(THIMBLE_BUILD_TESTS OFF)
  set(CMAKE_CXX_LINK_OPTIONS_PIE -static-pie)
  # The same bytes from any folder.
  add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}=. -ffile-prefix-map=${PROJECT_BINARY_DIR}=build)
endif()
