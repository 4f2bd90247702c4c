# What thimble needs, all of it from the system; nothing is downloaded. What is missing is named with its Debian package.
# The installed package includes this file too, which looks for what the libraries of `thimble_floors` need: engine,
# thimble, and for building them `build`.

set(missing "")
macro(thimble_need found package)
  if(NOT ${found})
    list(APPEND missing ${package})
  endif()
endmacro()

find_package(PkgConfig QUIET)
thimble_need(PKG_CONFIG_FOUND pkg-config)
if(PKG_CONFIG_FOUND)
  pkg_check_modules(openblas QUIET IMPORTED_TARGET openblas)
  pkg_check_modules(hwy QUIET IMPORTED_TARGET libhwy)
endif()
thimble_need(hwy_FOUND libhwy-dev)
if(NOT THIMBLE_STATIC) # which has fmt and yaml-cpp from cmake/static.cmake
  find_package(fmt QUIET)
  thimble_need(fmt_FOUND libfmt-dev)
  thimble_need(openblas_FOUND libopenblas-dev)
endif()

if("thimble" IN_LIST thimble_floors)
  if(NOT THIMBLE_STATIC)
    find_package(yaml-cpp QUIET)
    thimble_need(yaml-cpp_FOUND libyaml-cpp-dev)
  endif()
  find_package(nlohmann_json QUIET)
  thimble_need(nlohmann_json_FOUND nlohmann-json3-dev)
  set(THREADS_PREFER_PTHREAD_FLAG ON)
  find_package(Threads REQUIRED)
endif()

if("build" IN_LIST thimble_floors)
  find_path(THIMBLE_RANDOM123 Random123/philox.h)
  thimble_need(THIMBLE_RANDOM123 librandom123-dev)
  find_path(THIMBLE_XXHASH xxhash.h)
  thimble_need(THIMBLE_XXHASH libxxhash-dev)
  find_path(THIMBLE_EIGEN Eigen/SVD PATH_SUFFIXES eigen3)
  thimble_need(THIMBLE_EIGEN libeigen3-dev)
  find_package(CLI11 QUIET)
  thimble_need(CLI11_FOUND libcli11-dev)
endif()

if(missing)
  list(JOIN missing " " missing)
  message(FATAL_ERROR "thimble: missing packages; on Debian or Ubuntu: apt-get install ${missing}\n"
                      "(scripts/setup.sh installs everything)")
endif()
