/* probe_text.c - a probe for people: one line a subject, "unknown" for what is. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "probe.h"
#include "term.h"

enum { LINE_BYTES = 4096 };

static const char *text(const json_t *of, const char *name, const char *unknown)
{
    const char *value = json_string_value(json_object_get(of, name));
    return value ? value : unknown;
}

static void row(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void row(const char *name, const char *format, ...)
{
    char line[LINE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    printf("%-10s %s\n", name, line);
}

/** Writes value * scale with its unit, or "unknown". */
static const char *number(const json_t *of, const char *name, double scale, const char *format, char out[48])
{
    const json_t *value = json_object_get(of, name);
    if (!json_is_number(value))
        snprintf(out, 48, "unknown");
    else
        snprintf(out, 48, format, json_number_value(value) * scale); /* all callers are below, and pass one %f */
    return out;
}

static long long whole(const json_t *of, const char *name)
{
    return (long long)json_integer_value(json_object_get(of, name));
}

static const char *join(const json_t *list, char out[512])
{
    const json_t *word;
    size_t i, used = 0;
    out[0] = '\0';
    json_array_foreach((json_t *)(uintptr_t)list, i, word)
    {
        int n = snprintf(out + used, 512 - used, "%s%s", i ? " " : "", json_string_value(word));
        if (n < 0 || (size_t)n >= 512 - used)
            break;
        used += (size_t)n;
    }
    return *out ? out : "unknown";
}

/* ---- CPU ---- */

/** Whether two CPUs are shown alike. */
static bool alike(const json_t *a, const json_t *b)
{
    static const char *const names[] = {"capacity", "khz", "khz_allowed", "khz_highest"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!json_equal(json_object_get(a, names[i]), json_object_get(b, names[i])))
            return false;
    return true;
}

/** A line for each run of CPUs that are alike. */
static void print_cores(const json_t *cpus)
{
    size_t n = json_array_size(cpus);
    for (size_t i = 0, next; i < n; i = next) {
        const json_t *cpu = json_array_get(cpus, i);
        char a[48], b[48], range[64], clock[128] = "";
        for (next = i + 1; next < n && alike(cpu, json_array_get(cpus, next));)
            next++;
        if (next == i + 1)
            snprintf(range, sizeof range, "CPU %lld", whole(cpu, "cpu"));
        else
            snprintf(range, sizeof range, "CPUs %lld-%lld", whole(cpu, "cpu"), whole(json_array_get(cpus, next - 1), "cpu"));
        if (!json_is_null(json_object_get(cpu, "khz_highest")))
            snprintf(clock, sizeof clock, ", %s of %s GHz", number(cpu, "khz", 1e-6, "%.2f", a),
                     number(cpu, "khz_highest", 1e-6, "%.2f", b));
        row(i ? "" : "capacity", "%s: %lld of 1024%s", range, whole(cpu, "capacity"), clock);
    }
}

static void print_cpu(const json_t *cpu)
{
    char words[512], a[48], b[48];
    row("CPU", "%s%s%s, %lld of %lld CPUs usable", text(cpu, "name", "unknown"),
        json_is_null(json_object_get(cpu, "architecture")) ? "" : ", ", text(cpu, "architecture", ""), whole(cpu, "usable"),
        whole(cpu, "online"));
    row("features", "%s", join(json_object_get(cpu, "features"), words));
    row("kernels", "%s (of %s)", text(cpu, "kernels", "unknown"), join(json_object_get(cpu, "kernel_sets"), words));
    row("threads", "%lld by default, %lld at most: %s", whole(cpu, "threads_default"), whole(cpu, "threads_most"),
        text(cpu, "threads_reason", ""));
    print_cores(json_object_get(cpu, "cpus"));
    if (json_is_number(json_object_get(cpu, "clock")))
        row("clocks", "%s of the highest, %s allowed", number(cpu, "clock", 100, "%.0f %%", a),
            number(cpu, "clock_allowed", 100, "%.0f %%", b));
    else
        row("clocks", "unknown");
    if (json_is_number(json_object_get(cpu, "quota")))
        row("quota", "%s CPUs, by %s", number(cpu, "quota", 1, "%.2f", a), text(cpu, "quota_source", "?"));
}

/* ---- Memory ---- */

static void print_pressure(const char *name, const json_t *p)
{
    char a[48], b[48];
    if (json_is_object(p))
        row(name, "some %s, full %s of the last 10 s", number(p, "some10", 1, "%.2f %%", a),
            number(p, "full10", 1, "%.2f %%", b));
    else
        row(name, "unknown");
}

static void print_memory(const json_t *m)
{
    char a[48];
    row("memory", "%s; %s", number(m, "total_bytes", 1.0 / (1 << 20), "%.0f MiB", a),
        text(m, "available_reason", "what is available is unknown"));
    if (json_is_number(json_object_get(m, "limit_bytes")))
        row("limit", "%s, by %s", number(m, "limit_bytes", 1.0 / (1 << 20), "%.0f MiB", a), text(m, "limit_source", "?"));
    print_pressure("waiting", json_object_get(m, "pressure"));
    print_pressure("  for CPUs", json_object_get(m, "pressure_cpu"));
}

/* ---- Heat ---- */

static void print_zones(const json_t *zones)
{
    const json_t *zone, *trip;
    size_t i, k;
    json_array_foreach((json_t *)(uintptr_t)zones, i, zone)
    {
        char line[LINE_BYTES], a[48];
        int n = snprintf(line, sizeof line, "%s %s", text(zone, "name", "?"), number(zone, "celsius", 1, "%.1f C", a));
        json_array_foreach(json_object_get(zone, "trips"), k, trip) if (n > 0 && n < LINE_BYTES - 64) n +=
            snprintf(line + n, sizeof line - (size_t)n, ", %s at %.0f C", text(trip, "kind", "?"),
                     json_number_value(json_object_get(trip, "celsius")));
        row(i ? "" : "zones", "%s (%s)", line, text(zone, "kind", "?"));
    }
    if (json_array_size(zones) == 0)
        row("zones", "unknown");
}

static void print_thermal(const json_t *t)
{
    char words[512], a[48], b[48];
    const json_t *device;
    size_t i;
    row("heat", "%s, headroom %s%s%s", text(t, "status", "unknown"), number(t, "headroom", 1, "%.2f", a),
        json_array_size(json_object_get(t, "throttle")) ? "; held back: " : "",
        json_array_size(json_object_get(t, "throttle")) ? join(json_object_get(t, "throttle"), words) : "");
    print_zones(json_object_get(t, "zones"));
    json_array_foreach(json_object_get(t, "cooling"), i, device)
        row(i ? "" : "cooling", "%s: state %s of %s", text(device, "name", "?"), number(device, "state", 1, "%.0f", a),
            number(device, "highest", 1, "%.0f", b));
}

/* ---- Power ---- */

static void print_power(const json_t *p, const json_t *energy)
{
    char a[48], b[48];
    const json_t *external = json_object_get(p, "external");
    row("power", "%s", json_is_true(external) ? "external" : json_is_false(external) ? "battery" : "unknown");
    row("battery", "%s, level %s", text(p, "battery", "unknown"), number(p, "level", 100, "%.0f %%", a));
    if (json_is_number(json_object_get(p, "watts")))
        row("draw", "%s, from %s", number(p, "watts", 1, "%.3f W", b), text(p, "source", "?"));
    else
        row("draw", "unknown: %s", text(p, "reason", "nothing says"));
    if (json_is_string(json_object_get(energy, "source")))
        row("energy", "%s, good to about %s", text(energy, "source", "?"), number(energy, "error", 100, "%.0f %%", a));
    else
        row("energy", "unknown: %s", text(energy, "reason", "nothing says"));
}

/* ---- What was measured ---- */

static void print_models(const json_t *models)
{
    const json_t *m;
    size_t i;
    json_array_foreach((json_t *)(uintptr_t)models, i, m)
    {
        char a[48], b[48], c[48];
        row(i ? "" : "models", "%s: decode %s tokens/s over %s, prefill %s tokens/s; %lld thread%s, %s%s",
            text(m, "model", "?"), number(m, "decode_tps", 1, "%.1f", a), number(m, "measured_s", 1, "%.0f s", b),
            number(m, "prefill_tps", 1, "%.1f", c), whole(m, "threads"),
            json_integer_value(json_object_get(m, "threads")) == 1 ? "" : "s", text(m, "kernels", "?"),
            json_is_true(json_object_get(m, "holds")) ? "" : " (of another build or CPU)");
    }
}

static void print_measured(const json_t *probe)
{
    char a[48], b[48];
    const json_t *bandwidth = json_object_get(probe, "bandwidth"), *storage = json_object_get(probe, "storage");
    if (json_is_object(bandwidth))
        row("bandwidth", "%s with %lld thread%s", number(bandwidth, "read_bytes_per_s", 1e-9, "%.2f GB/s", a),
            whole(bandwidth, "threads"), json_integer_value(json_object_get(bandwidth, "threads")) == 1 ? "" : "s");
    else
        row("bandwidth", "not measured");
    if (json_is_object(storage) && json_is_number(json_object_get(storage, "bytes_per_s")))
        row("disk", "%s: %s (%s, %s read)", text(storage, "disk", "unknown"),
            number(storage, "bytes_per_s", 1e-6, "%.0f MB/s", a), text(storage, "method", "?"),
            number(storage, "bytes", 1e-6, "%.0f MB", b));
    else if (json_is_object(storage))
        row("disk", "unknown: %s", text(storage, "reason", "?"));
    print_models(json_object_get(probe, "models"));
}

static void print_resident(const json_t *list)
{
    const json_t *entry;
    size_t i;
    json_array_foreach((json_t *)(uintptr_t)list, i, entry)
    {
        char a[48], b[48];
        row(i ? "" : "resident", "%s: %s of %s in memory, process %lld (%s)", text(entry, "file", "?"),
            number(entry, "resident_bytes", 1.0 / (1 << 20), "%.1f", a),
            number(entry, "mapped_bytes", 1.0 / (1 << 20), "%.1f MiB", b), whole(entry, "pid"), text(entry, "process", "?"));
    }
    if (json_array_size(list) == 0)
        row("resident", "no model, in processes of this user");
}

void mica_probe_print(const json_t *probe)
{
    row("mica", "%s, build %.16s", text(probe, "mica", "?"), text(probe, "build", "?"));
    if (json_is_string(json_object_get(probe, "sysroot")))
        row("root", "%s: kernels are this machine's, the rest is read there, and nothing is measured",
            text(probe, "sysroot", ""));
    print_cpu(json_object_get(probe, "cpu"));
    print_memory(json_object_get(probe, "memory"));
    print_thermal(json_object_get(probe, "thermal"));
    print_power(json_object_get(probe, "power"), json_object_get(probe, "energy"));
    print_measured(probe);
    print_resident(json_object_get(probe, "resident"));
}
