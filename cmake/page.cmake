# Puts the files of the HTML report, src/inspect/report/page, into one C++ source, so that the program needs no file beside it.

# The scripts of `thimble inspect` and `thimble compare`, in the order in which they run.
set(THIMBLE_PAGE_INSPECT base.js means.js map.js save.js chart.js table.js heads.js head.js tokens.js model.js series.js address.js page.js)
set(THIMBLE_PAGE_COMPARE base.js map.js chart.js table.js compare_heads.js compare.js)
set(THIMBLE_PAGE_DIR ${CMAKE_CURRENT_LIST_DIR}/../src/inspect/report/page)

# Sets OUT_VAR to the generated source of what src/inspect/report/page.h declares.
function(thimble_page OUT_VAR)
  foreach(file page.html page.css ${THIMBLE_PAGE_INSPECT} ${THIMBLE_PAGE_COMPARE})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${THIMBLE_PAGE_DIR}/${file})
  endforeach()
  file(READ ${THIMBLE_PAGE_DIR}/page.html PAGE_HTML)
  file(READ ${THIMBLE_PAGE_DIR}/page.css PAGE_STYLE)
  # A page without a script, as that of `thimble reproduce`, is dark where the system is.
  if(NOT PAGE_STYLE MATCHES ":root\\[data-theme=\"dark\"\\] ({[^}]*})")
    message(FATAL_ERROR "page.css: no colors of the dark theme")
  endif()
  string(APPEND PAGE_STYLE "@media (prefers-color-scheme: dark) { :root:not([data-theme]) ${CMAKE_MATCH_1} }\n")
  foreach(command INSPECT COMPARE)
    set(PAGE_${command})
    set(script)
    foreach(file IN LISTS THIMBLE_PAGE_${command})
      file(READ ${THIMBLE_PAGE_DIR}/${file} text)
      string(APPEND script "${text}")
      string(APPEND PAGE_${command} "R\"page(${text})page\",\n")
    endforeach()
    string(SHA256 PAGE_${command}_HASH "${script}")
  endforeach()
  string(SHA256 PAGE_STYLE_HASH "${PAGE_STYLE}")
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/page.cpp)
  configure_file(${THIMBLE_PAGE_DIR}/page.cpp.in ${generated} @ONLY)
  set(${OUT_VAR} ${generated} PARENT_SCOPE)
endfunction()
