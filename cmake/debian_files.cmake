# Adds to the folder of a Debian package what its policy asks for: compressed manual and changelog, and the license.
set(share ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr/share)
file(COPY_FILE ${CPACK_RESOURCE_FILE_LICENSE} ${share}/doc/thimble/copyright)
execute_process(COMMAND gzip --no-name --best ${share}/man/man1/thimble.1 ${share}/doc/thimble/changelog
                COMMAND_ERROR_IS_FATAL ANY)
