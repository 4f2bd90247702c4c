// Catch2 version 2 has no library with a main.
#define CATCH_CONFIG_MAIN
#include "catch.h"
