#include <emscripten.h>
extern "C" {
EMSCRIPTEN_KEEPALIVE char* lab_call(const char*) { return nullptr; }
EMSCRIPTEN_KEEPALIVE void lab_free(char*) {}
}
