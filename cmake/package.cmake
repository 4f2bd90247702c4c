# What `cmake --build DIRECTORY --target package` makes: a package for Debian and its relatives that holds all that is
# installed. Which libraries the program needs is read from the program.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "The developers of thimble <developers@thimble.invalid>")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/debian_files.cmake)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
    "Trains small transformers on toy sequences from a YAML config and reports\nwhat each attention head learned.\n\
The headers and the static library are in here too; programs that use them\nneed the recommended packages.")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS
    "libfmt-dev, libhwy-dev, libopenblas-dev, libyaml-cpp-dev, nlohmann-json3-dev, pkg-config")
set(CPACK_STRIP_FILES thimble_program)
include(CPack)
