#include "source_directory.h"

std::string source_directory() { return THIMBLE_SOURCE_DIR; }
