/* temperature.h - how hot the processor says it is. Reads /sys under a root prefix; changes nothing. Called by serve. */
#ifndef MICA_DEVICE_TEMPERATURE_H
#define MICA_DEVICE_TEMPERATURE_H
#include <stdbool.h>

typedef struct mica_temperature {
    double celsius;
    char source[32]; /* what the kernel calls the sensor */
} mica_temperature;

/** The hottest sensor of the processor: of the thermal zones whose type names one, else of the hwmon chips that are known to be
 * one. False if the machine does not tell. */
bool mica_temperature_read(const char *sysroot, mica_temperature *out);

#endif
