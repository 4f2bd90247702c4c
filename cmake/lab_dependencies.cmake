# What the library needs where it is compiled to WebAssembly, in place of dependencies.cmake: headers of the system
# alone, which are found below one folder of their own, so that the system's C library is not found with them.
set(lab_include ${CMAKE_BINARY_DIR}/include)
file(MAKE_DIRECTORY ${lab_include})
foreach(header fmt nlohmann hwy xxhash.h Random123)
  if(NOT EXISTS /usr/include/${header})
    message(FATAL_ERROR "thimble: /usr/include/${header} is missing; on Debian or Ubuntu: scripts/setup.sh lab")
  endif()
endforeach()
foreach(header fmt nlohmann hwy xxhash.h)
  file(CREATE_LINK /usr/include/${header} ${lab_include}/${header} SYMBOLIC)
endforeach()
file(CREATE_LINK /usr/include/eigen3/Eigen ${lab_include}/Eigen SYMBOLIC)
# Random123 refuses CPUs that it does not list; it has plain C for them all.
file(COPY /usr/include/Random123 DESTINATION ${lab_include})
set(features ${lab_include}/Random123/features/gccfeatures.h)
file(READ ${features} text)
string(REPLACE "#if !defined(__x86_64__)" "#if !defined(__wasm__) && !defined(__x86_64__)" text "${text}")
file(WRITE ${features} "${text}")

set(THIMBLE_RANDOM123 ${lab_include})
set(THIMBLE_XXHASH ${lab_include})
add_library(lab_headers INTERFACE)
target_include_directories(lab_headers SYSTEM INTERFACE ${lab_include})
target_compile_definitions(lab_headers INTERFACE FMT_HEADER_ONLY)
foreach(name fmt::fmt nlohmann_json::nlohmann_json PkgConfig::hwy)
  add_library(${name} ALIAS lab_headers)
endforeach()
foreach(name Threads::Threads PkgConfig::openblas yaml-cpp::yaml-cpp) # nothing of these
  add_library(${name} INTERFACE IMPORTED)
endforeach()

# What a page has no use for or another way of: processes, threads, files in common use, OpenBLAS, yaml-cpp, reports.
set(THIMBLE_NOT_IN_LAB
    "/files/(lock|memory|process|thread_pool)\\.cpp$|/config/(changes|yaml_parser)\\.cpp$\
|/kernels/(products/backend(_selection)?|cpu_targets_dispatch)\\.cpp$\
|/report/(html|page|svg)\\.cpp$")

# WebAssembly needs no position-independent code, and linking it costs time in every call.
set(CMAKE_CXX_COMPILE_OPTIONS_PIC "")
set(CMAKE_CXX_COMPILE_OPTIONS_PIE "")
set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON) # clang has other ones for each set of macros
