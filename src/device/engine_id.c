/* engine_id.c - which engine this is: cmake/engine_id.cmake makes the header from the engine's sources. */
#include <engine_id.h> /* generated */

#include "device/figures.h"

const char *mica_engine_id(void) { return MICA_ENGINE_ID; }
