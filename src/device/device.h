/* device.h - the monitor behind mica_device.h, for callers that bring their own clock: tests, and what replays a machine. */
#ifndef MICA_DEVICE_DEVICE_H
#define MICA_DEVICE_DEVICE_H
#include "device/thermal.h"
#include "mica/mica_device.h"

/** mica_device_read() as if it were `now_ns`, which must not go backwards; the reading is always taken. */
mica_status mica_device_read_at(mica_device *device, int64_t now_ns, mica_device_state *state, mica_error *err);

/** What zones and cooling devices say together: temperatures, thermal, headroom, cooling, and the bits COOLING and
 * TRIP of throttle. */
void mica_device_judge_heat(const mica_thermal *t, mica_device_state *s);

/** A state in which everything is unknown. */
void mica_device_state_clear(mica_device_state *s);

/** Takes what the app reported into a state. */
void mica_device_merge(const mica_app_report *report, int64_t reported_ns, mica_device_state *s);

#endif
