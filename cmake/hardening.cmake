# Protects the library and the program against what hostile files may find wrong in them. Sanitizers bring their own
# checks and do not go together with these.
#
# thimble_harden_link(TARGET) gives a program the flags; the two variables are for every target of the build.

# Libraries are looked for where they were linked, by absolute path. Otherwise CMake pads the path of the build tree
# with an empty element, which the loader takes for the current directory.
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)

function(thimble_harden_link target)
  target_link_options(${target} PRIVATE -Wl,-z,relro,-z,now,-z,noexecstack)
endfunction()
