# The toolchain of the lab: Debian's emscripten, with the headers of the C++ library of Debian's LLVM 16, since the
# library that emscripten 3.1.6 brings has no ranges. The headers are made to match the library that is linked.
#
# scripts/lab.sh sets the variables of the environment that emcc reads: EM_CONFIG, EM_CACHE and NODE_PATH.
include(/usr/share/emscripten/cmake/Modules/Platform/Emscripten.cmake)

set(THIMBLE_LIBCXX /usr/lib/llvm-16/include/wasm32-wasi/c++/v1 CACHE PATH "Headers of libc++ 16 for WebAssembly")
set(site ${CMAKE_BINARY_DIR}/libcxx)
file(CONFIGURE OUTPUT ${site}/__config_site @ONLY CONTENT [[
#ifndef _LIBCPP___CONFIG_SITE
#define _LIBCPP___CONFIG_SITE
#define _LIBCPP_ABI_VERSION 2
#define _LIBCPP_ABI_NAMESPACE __2
#define _LIBCPP_HAS_MUSL_LIBC
#define _LIBCPP_HAS_THREAD_API_PTHREAD
#define _LIBCPP_HAS_NO_VENDOR_AVAILABILITY_ANNOTATIONS
#define _LIBCPP_ENABLE_ASSERTIONS_DEFAULT 0
#endif
]])
# Exceptions of WebAssembly itself, which cost nothing where none is thrown.
string(APPEND CMAKE_CXX_FLAGS_INIT " -nostdinc++ -isystem ${site} -isystem ${THIMBLE_LIBCXX} -msimd128"
       " -fwasm-exceptions -include ${CMAKE_CURRENT_LIST_DIR}/../src/addons/lab/portability.h")
string(APPEND CMAKE_EXE_LINKER_FLAGS_INIT " -fwasm-exceptions")
