# Finds the gradcheck cases of ops and writes the list of them: src/engine/ops/NAME.cpp defines those of its ops in
# gradcheck_NAME().

set(THIMBLE_OPS_DIR ${CMAKE_CURRENT_LIST_DIR}/../src/engine/ops)

# Sets OUT_VAR to the generated source.
function(thimble_op_list OUT_VAR)
  file(GLOB files CONFIGURE_DEPENDS ${THIMBLE_OPS_DIR}/*.cpp)
  foreach(file IN LISTS files)
    cmake_path(GET file STEM name)
    file(STRINGS ${file} found REGEX "> gradcheck_[a-z_]+\\(\\)" LIMIT_COUNT 1)
    if(found MATCHES "gradcheck_${name}\\(\\)")
      list(APPEND cases "gradcheck_${name}()")
    elseif(found)
      message(FATAL_ERROR "${file}: the gradcheck cases must be in gradcheck_${name}(), not: ${found}")
    endif()
  endforeach()
  list(JOIN cases ", " OP_CASES)
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/gradcheck_cases.cpp)
  configure_file(${THIMBLE_OPS_DIR}/gradcheck_cases.cpp.in ${generated} @ONLY)
  set(${OUT_VAR} ${generated} PARENT_SCOPE)
endfunction()
