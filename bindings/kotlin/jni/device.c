/* device.c - the device monitor for Java: what the app reports goes in, the state comes out as numbers. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "mica_jni.h"

struct mica_jni_device {
    mica_device *device;
    atomic_int references; /* Java's handle, and one for each engine that uses it */
};

mica_device *mica_jni_device_retain(mica_jni_device *device)
{
    atomic_fetch_add(&device->references, 1);
    return device->device;
}

void mica_jni_device_release(mica_jni_device *device)
{
    if (device && atomic_fetch_sub(&device->references, 1) == 1) {
        mica_device_close(device->device);
        free(device);
    }
}

/** deviceOpen(byte[] sysroot): long. An empty root is the real one. */
static jlong device_open(JNIEnv *env, jclass class, jbyteArray sysroot)
{
    (void)class;
    mica_error err = {.code = MICA_OUT_OF_MEMORY, .position = -1, .message = "no memory for a device monitor"};
    mica_device_options options = mica_device_options_default();
    size_t length;
    char *root = mica_jni_bytes_copy(env, sysroot, &length);
    if (!root)
        return 0;
    options.sysroot = root;
    mica_jni_device *device = calloc(1, sizeof *device);
    jlong handle = 0;
    if (device && !mica_device_open(&options, &device->device, &err)) {
        atomic_init(&device->references, 1);
        handle = mica_jni_handle_new(MICA_JNI_DEVICE, device);
        err = (mica_error){.code = MICA_OUT_OF_MEMORY, .position = -1, .message = "too many engines and devices are open"};
    }
    free(root);
    if (!handle) {
        if (device)
            mica_device_close(device->device);
        free(device);
        mica_jni_throw(env, &err);
    }
    return handle;
}

static void device_close(JNIEnv *env, jclass class, jlong handle)
{
    (void)env, (void)class;
    mica_jni_device_release(mica_jni_handle_remove(MICA_JNI_DEVICE, handle));
}

/* Numbers of an enum or an answer: what is out of range would be taken for another thing. */
static int in_range(jint value, int highest) { return value < -1 || value > highest ? -1 : value; }

/** deviceReport(handle, thermal, headroom, powerSave, foreground, trim, batteryLevel, battery, onMains). -1, NaN: not said. */
static void device_report(JNIEnv *env, jclass class, jlong handle, jint thermal, jdouble headroom, jint power_save,
                          jint foreground, jint trim, jdouble battery_level, jint battery, jint on_mains)
{
    (void)class;
    mica_jni_device *device = mica_jni_handle_acquire(env, MICA_JNI_DEVICE, handle);
    if (!device)
        return;
    mica_app_report report = mica_app_report_default();
    report.thermal = (mica_thermal_status)in_range(thermal, MICA_THERMAL_SHUTDOWN);
    report.headroom = headroom;
    report.power_save = in_range(power_save, MICA_YES);
    report.foreground = in_range(foreground, MICA_YES);
    report.trim = (mica_trim_level)in_range(trim, MICA_TRIM_CRITICAL);
    report.battery_level = battery_level;
    report.battery = (mica_battery_status)in_range(battery, MICA_BATTERY_IDLE);
    report.on_mains = in_range(on_mains, MICA_YES);
    mica_error err;
    mica_status status = mica_device_report(device->device, &report, &err);
    mica_jni_handle_release(handle);
    if (status)
        mica_jni_throw(env, &err);
}

/* In the order of DeviceState.of() in Device.kt. */
enum { STATE_FIGURES = 13 };

/** deviceRead(handle): double[]. */
static jdoubleArray device_read(JNIEnv *env, jclass class, jlong handle)
{
    (void)class;
    mica_jni_device *device = mica_jni_handle_acquire(env, MICA_JNI_DEVICE, handle);
    if (!device)
        return NULL;
    mica_device_state s;
    mica_error err;
    mica_status status = mica_device_read(device->device, &s, &err);
    mica_jni_handle_release(handle);
    if (status) {
        mica_jni_throw(env, &err);
        return NULL;
    }
    const jdouble figures[STATE_FIGURES] = {
        s.thermal, s.headroom, s.temp_max_mc == MICA_UNKNOWN_MC ? NAN : s.temp_max_mc / 1000.0, s.throttle, s.power_save,
        s.foreground, s.trim, s.battery_level, s.battery, s.on_mains, (double)s.memory_available, (double)s.memory_total,
        s.clock,
    };
    jdoubleArray out = (*env)->NewDoubleArray(env, STATE_FIGURES);
    if (out)
        (*env)->SetDoubleArrayRegion(env, out, 0, STATE_FIGURES, figures);
    return out;
}

const JNINativeMethod mica_jni_device_methods[] = {
    {"deviceOpen", "([B)J", (void *)device_open},
    {"deviceClose", "(J)V", (void *)device_close},
    {"deviceReport", "(JIDIIIDII)V", (void *)device_report},
    {"deviceRead", "(J)[D", (void *)device_read},
};
const jint mica_jni_device_method_count = sizeof mica_jni_device_methods / sizeof *mica_jni_device_methods;
