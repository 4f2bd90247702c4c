# Everything comes from the system; nothing is downloaded. What is missing is named with its Debian package.

set(missing "")
macro(thimble_need found package)
  if(NOT ${found})
    list(APPEND missing ${package})
  endif()
endmacro()

find_package(fmt QUIET)
thimble_need(fmt_FOUND libfmt-dev)
find_package(yaml-cpp QUIET)
thimble_need(yaml-cpp_FOUND libyaml-cpp-dev)
find_package(nlohmann_json QUIET)
thimble_need(nlohmann_json_FOUND nlohmann-json3-dev)
find_package(CLI11 QUIET)
thimble_need(CLI11_FOUND libcli11-dev)
find_package(OpenMP QUIET COMPONENTS CXX)
thimble_need(OpenMP_CXX_FOUND "libgomp1 (with g++) or libomp-dev (with clang)")
find_package(PkgConfig QUIET)
thimble_need(PKG_CONFIG_FOUND pkg-config)
if(PKG_CONFIG_FOUND)
  pkg_check_modules(openblas QUIET IMPORTED_TARGET openblas)
  pkg_check_modules(hwy QUIET IMPORTED_TARGET libhwy)
endif()
thimble_need(openblas_FOUND libopenblas-dev)
thimble_need(hwy_FOUND libhwy-dev)
find_path(THIMBLE_RANDOM123 Random123/philox.h)
thimble_need(THIMBLE_RANDOM123 librandom123-dev)
find_path(THIMBLE_XXHASH xxhash.h)
thimble_need(THIMBLE_XXHASH libxxhash-dev)

if(missing)
  list(JOIN missing " " missing)
  message(FATAL_ERROR "thimble: missing packages; on Debian or Ubuntu: apt-get install ${missing}\n"
                      "(scripts/setup.sh installs everything)")
endif()

add_library(thimble_dependencies INTERFACE)
# Newer yaml-cpp exports a namespaced target only.
set(yaml $<IF:$<TARGET_EXISTS:yaml-cpp::yaml-cpp>,yaml-cpp::yaml-cpp,yaml-cpp>)
target_link_libraries(
  thimble_dependencies INTERFACE fmt::fmt ${yaml} nlohmann_json::nlohmann_json CLI11::CLI11 OpenMP::OpenMP_CXX
                                 PkgConfig::openblas PkgConfig::hwy)
target_include_directories(thimble_dependencies SYSTEM INTERFACE ${THIMBLE_RANDOM123} ${THIMBLE_XXHASH})
