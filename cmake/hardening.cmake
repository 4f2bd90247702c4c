# Protects the library and the program against what hostile files may find wrong in them. Sanitizers bring their own
# checks and do not go together with these.
#
# thimble_harden(TARGET) gives a target the flags; the two variables are for every target of the build.
include(CheckCXXSourceCompiles)
include(CheckPIESupported)
check_pie_supported()

# Libraries are looked for where they were linked, by absolute path. Otherwise CMake pads the path of the build tree
# with an empty element, which the loader takes for the current directory. The system's loader finds those of the system.
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
if(NOT openblas_LIBDIR MATCHES "^/usr/lib")
  set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)
endif()

# Control-flow protection (x86 only) works where every object of a program has its note, and so the program. The start
# files of Debian 12 have none: then the flag would be in vain.
set(CMAKE_REQUIRED_FLAGS -fcf-protection)
set(CMAKE_REQUIRED_LINK_OPTIONS -Wl,-z,cet-report=error,--fatal-warnings)
check_cxx_source_compiles("int main() {}" THIMBLE_CF_PROTECTION)
unset(CMAKE_REQUIRED_FLAGS)
unset(CMAKE_REQUIRED_LINK_OPTIONS)

function(thimble_harden target)
  if(THIMBLE_SANITIZE OR THIMBLE_FUZZ OR EMSCRIPTEN)
    return()
  endif()
  # Fortified functions need the optimizer; distributions may have asked for them already.
  target_compile_options(${target} PRIVATE -fstack-protector-strong
                                           $<$<BOOL:${THIMBLE_CF_PROTECTION}>:-fcf-protection>
                                           $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2>)
  target_link_options(${target} PRIVATE -Wl,-z,relro,-z,now,-z,noexecstack)
endfunction()
