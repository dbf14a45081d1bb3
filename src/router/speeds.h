/* speeds.h - what was measured of a rung's model on this device (device/figures.h), for a decision. Called by programs. */
#ifndef MICA_ROUTER_SPEEDS_H
#define MICA_ROUTER_SPEEDS_H
#include "mica/mica_router.h"

/** Fills prefill_tps, decode_tps and watts with figures that hold for this build, CPU and kernel set; what is not there, or was
 * measured under another build, stays as it is. `figures` is the path of the device's file; `sysroot` may be NULL. */
void mica_route_speeds(const char *figures, const char *model_path, const char *sysroot, mica_route_rung_state *out);

#endif
