# THIMBLE_SANITIZE: "" (none), "address" (with undefined behavior) or "thread".
#
# thimble_sanitize(TARGET) gives an interface target the flags; THIMBLE_TEST_ENVIRONMENT is what tests need around them.
set(THIMBLE_SANITIZE "" CACHE STRING "Sanitizer: empty, address (with undefined behavior) or thread")
set_property(CACHE THIMBLE_SANITIZE PROPERTY STRINGS "" address thread)

set(THIMBLE_SANITIZE_FLAGS "")
set(THIMBLE_TEST_ENVIRONMENT "")
if(THIMBLE_SANITIZE STREQUAL "address")
  set(THIMBLE_SANITIZE_FLAGS -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  set(THIMBLE_TEST_ENVIRONMENT "ASAN_OPTIONS=detect_stack_use_after_return=1" "UBSAN_OPTIONS=print_stacktrace=1")
elseif(THIMBLE_SANITIZE STREQUAL "thread")
  set(THIMBLE_SANITIZE_FLAGS -fsanitize=thread -fno-omit-frame-pointer)
  # OpenBLAS and libstdc++ are not instrumented: what happens inside them is not judged, what their callers do is.
  set(THIMBLE_TEST_ENVIRONMENT "TSAN_OPTIONS=ignore_noninstrumented_modules=1:halt_on_error=1")
elseif(THIMBLE_SANITIZE)
  message(FATAL_ERROR "THIMBLE_SANITIZE is \"${THIMBLE_SANITIZE}\"; it can be empty, address or thread")
endif()

function(thimble_sanitize target)
  target_compile_options(${target} INTERFACE ${THIMBLE_SANITIZE_FLAGS})
  target_link_options(${target} INTERFACE ${THIMBLE_SANITIZE_FLAGS})
endfunction()
