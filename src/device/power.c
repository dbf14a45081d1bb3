#include "device/power.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "device/sysfile.h"

#define CLASS "/sys/class/power_supply"

/* Above it no phone or laptop is fed by its battery; below the other, no machine computes. Volts: one cell that is empty to
 * a pack of a machine tool. */
#define MOST_WATTS         200.0
#define LEAST_MICROAMPERES 20000
#define LEAST_VOLTS        1.0
#define MOST_VOLTS         60.0

static void supply_folder(const char *name, char out[128])
{
    snprintf(out, 128, CLASS "/%s", name);
}

/** A file in millionths, as the kernel's interface has all of them; NAN unless there is a number in it. */
static double read_micro(const char *sysroot, const char *folder, const char *name)
{
    int64_t value;
    return mica_sysfile_int_in(sysroot, folder, name, &value) ? (double)value / 1e6 : NAN;
}

static double positive(double value)
{
    return value > 0.0 ? value : NAN;
}

/* ---- One battery ---- */

static mica_battery_status read_status(const char *sysroot, const char *folder)
{
    static const struct {
        const char *word;
        mica_battery_status status;
    } words[] = {
        {"Discharging", MICA_BATTERY_DISCHARGING},
        {"Charging", MICA_BATTERY_CHARGING},
        {"Full", MICA_BATTERY_FULL},
        {"Not charging", MICA_BATTERY_IDLE},
    };
    char text[32];
    if (mica_sysfile_word(sysroot, folder, "status", text, sizeof text))
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (strcmp(text, words[i].word) == 0)
                return words[i].status;
    return MICA_BATTERY_UNKNOWN;
}

/** The first of the two currents that can be true, as a magnitude in amperes. */
static double read_amps(const char *sysroot, const char *folder, mica_battery *b)
{
    static const char *const names[] = {"current_now", "current_avg"};
    for (size_t i = 0; i < 2; i++) {
        double amps = fabs(read_micro(sysroot, folder, names[i]));
        if (isnan(amps))
            continue;
        if (b->status == MICA_BATTERY_DISCHARGING && amps < LEAST_MICROAMPERES / 1e6)
            amps *= 1000.0;
        snprintf(b->source, sizeof b->source, "%s", names[i]);
        return amps;
    }
    return NAN;
}

static void read_power(const char *sysroot, const char *folder, mica_battery *b)
{
    b->watts = fabs(read_micro(sysroot, folder, "power_now"));
    b->amps = read_amps(sysroot, folder, b);
    if (!isnan(b->watts))
        snprintf(b->source, sizeof b->source, "power_now");
    else
        b->watts = b->amps * b->volts;
    /* A battery that gives power to nothing is one whose gauge is off. */
    if (!(b->watts <= MOST_WATTS) || (b->watts == 0.0 && b->status == MICA_BATTERY_DISCHARGING))
        b->watts = NAN;
}

static double part_of(double value, double full)
{
    return value >= 0.0 && full > 0.0 && value <= 1.2 * full ? fmin(value / full, 1.0) : NAN;
}

static void read_level(const char *sysroot, const char *folder, mica_battery *b)
{
    int64_t percent;
    b->level = part_of(b->energy_j, b->energy_full_j);
    if (isnan(b->level))
        b->level = part_of(b->charge_as, b->full_as);
    if (mica_sysfile_int_in(sysroot, folder, "capacity", &percent) && percent >= 0 && percent <= 100)
        b->level = (double)percent / 100.0; /* what the machine's own display shows */
}

static void read_battery(const char *sysroot, const char *folder, mica_battery *b)
{
    int64_t tenths;
    b->status = read_status(sysroot, folder);
    b->volts = read_micro(sysroot, folder, "voltage_now");
    if (!(b->volts >= LEAST_VOLTS && b->volts <= MOST_VOLTS))
        b->volts = NAN;
    read_power(sysroot, folder, b);
    b->charge_as = positive(read_micro(sysroot, folder, "charge_counter") * 3600.0);
    if (isnan(b->charge_as))
        b->charge_as = positive(read_micro(sysroot, folder, "charge_now") * 3600.0);
    b->full_as = positive(read_micro(sysroot, folder, "charge_full") * 3600.0);
    b->energy_j = positive(read_micro(sysroot, folder, "energy_now") * 3600.0);
    b->energy_full_j = positive(read_micro(sysroot, folder, "energy_full") * 3600.0);
    read_level(sysroot, folder, b);
    b->temp_mc = MICA_UNKNOWN_MC;
    if (mica_sysfile_int_in(sysroot, folder, "temp", &tenths) && tenths > -400 && tenths < 1500 && tenths != 0 && tenths != -1)
        b->temp_mc = (int32_t)tenths * 100;
}

/* ---- Which supplies ---- */

typedef struct supplies {
    int n;
    char name[MICA_POWER_SUPPLIES][64];
} supplies;

static bool is_peripheral(const char *sysroot, const char *folder)
{
    char scope[16];
    return mica_sysfile_word(sysroot, folder, "scope", scope, sizeof scope) && strcmp(scope, "Device") == 0;
}

static bool is_present(const char *sysroot, const char *folder)
{
    int64_t present;
    return !mica_sysfile_int_in(sysroot, folder, "present", &present) || present != 0;
}

static void add_external(const char *sysroot, const char *folder, const char *name, mica_power *out)
{
    int64_t online;
    if (!mica_sysfile_int_in(sysroot, folder, "online", &online) || online < 0)
        return;
    if (online > 0 && out->external != MICA_YES) {
        out->external = MICA_YES;
        snprintf(out->external_name, sizeof out->external_name, "%s", name);
    }
    if (out->external == MICA_UNKNOWN)
        out->external = MICA_NO;
}

/** Takes in one supply; *mains: a supply that is no battery was seen. */
static void add_supply(const char *sysroot, const char *name, bool only, mica_power *out, bool *mains)
{
    char folder[128], type[32];
    supply_folder(name, folder);
    if (!mica_sysfile_word(sysroot, folder, "type", type, sizeof type) || is_peripheral(sysroot, folder))
        return;
    if (strcmp(type, "Battery") != 0) {
        *mains |= strcmp(type, "Mains") == 0;
        if (strcmp(type, "BMS") != 0 && strcmp(type, "UPS") != 0)
            add_external(sysroot, folder, name, out);
        return;
    }
    if (out->n_batteries == MICA_POWER_BATTERIES || !is_present(sysroot, folder) || (only && strcmp(name, "battery") != 0))
        return;
    mica_battery *b = &out->battery[out->n_batteries++];
    memset(b, 0, sizeof *b);
    snprintf(b->name, sizeof b->name, "%s", name);
    read_battery(sysroot, folder, b);
}

static bool has_main_battery(const char *sysroot, const supplies *all)
{
    char type[32];
    for (int i = 0; i < all->n; i++)
        if (strcmp(all->name[i], "battery") == 0)
            return mica_sysfile_word(sysroot, CLASS "/battery", "type", type, sizeof type) && strcmp(type, "Battery") == 0 &&
                   is_present(sysroot, CLASS "/battery");
    return false;
}

/* ---- All together ---- */

/** A sum that is unknown as soon as one part is. */
static void sum_batteries(mica_power *p)
{
    double level = 0, weight = 0;
    p->flow_w = p->charge_as = p->energy_j = p->volts = 0;
    for (int i = 0; i < p->n_batteries; i++) {
        const mica_battery *b = &p->battery[i];
        double full = isnan(b->energy_full_j) ? 1.0 : b->energy_full_j;
        if (!isnan(b->level)) {
            level += b->level * full;
            weight += full;
        }
        /* One of two batteries rests while the other works: its gauge may then say nothing. */
        if (b->status == MICA_BATTERY_DISCHARGING || b->status == MICA_BATTERY_CHARGING || p->n_batteries == 1)
            p->flow_w += b->watts;
        p->charge_as += b->charge_as;
        p->energy_j += b->energy_j;
        p->volts += b->volts / p->n_batteries;
        if (b->temp_mc != MICA_UNKNOWN_MC && (p->temp_mc == MICA_UNKNOWN_MC || b->temp_mc > p->temp_mc))
            p->temp_mc = b->temp_mc;
        if (p->status != MICA_BATTERY_DISCHARGING &&
            (i == 0 || b->status == MICA_BATTERY_DISCHARGING || b->status == MICA_BATTERY_CHARGING))
            p->status = b->status;
    }
    p->level = weight > 0 ? level / weight : NAN;
    if (!isnan(p->flow_w))
        snprintf(p->source, sizeof p->source, "%s/%s%s", p->battery[0].name, p->battery[0].source,
                 p->n_batteries > 1 ? ", ..." : "");
}

/** Why the battery's power is not what the device takes, if it is not. */
static void judge(mica_power *p, bool readable)
{
    p->draw_w = NAN;
    if (!readable)
        snprintf(p->reason, sizeof p->reason, "there is no " CLASS);
    else if (p->n_batteries == 0)
        snprintf(p->reason, sizeof p->reason, "no battery is present");
    else if (p->external == MICA_YES)
        snprintf(p->reason, sizeof p->reason, "on external power (%.63s): the battery's current is not the device's",
                 *p->external_name ? p->external_name : "by the battery's status");
    else if (p->status != MICA_BATTERY_DISCHARGING)
        snprintf(p->reason, sizeof p->reason, "the battery's status is %s: its current is not the device's",
                 mica_battery_status_name(p->status));
    else if (isnan(p->flow_w))
        snprintf(p->reason, sizeof p->reason, "%.63s tells neither power_now nor current and voltage that can be true",
                 p->battery[0].name);
    else
        p->draw_w = p->flow_w;
}

void mica_power_read(const char *sysroot, mica_power *out)
{
    supplies all;
    bool mains = false;
    memset(out, 0, sizeof *out);
    out->external = MICA_UNKNOWN;
    out->status = MICA_BATTERY_UNKNOWN;
    out->temp_mc = MICA_UNKNOWN_MC;
    out->level = out->flow_w = out->charge_as = out->energy_j = out->volts = NAN;
    all.n = mica_sysfile_list(sysroot, CLASS, all.name, MICA_POWER_SUPPLIES);
    bool only = has_main_battery(sysroot, &all);
    for (int i = 0; i < all.n; i++)
        add_supply(sysroot, all.name[i], only, out, &mains);
    if (out->n_batteries > 0)
        sum_batteries(out);
    else if (mains) /* an empty folder says nothing: in a container it is empty on a laptop, too */
        out->status = MICA_BATTERY_NONE;
    if (out->external == MICA_UNKNOWN && out->n_batteries > 0 && out->status != MICA_BATTERY_UNKNOWN)
        out->external = out->status == MICA_BATTERY_DISCHARGING ? MICA_NO : MICA_YES;
    judge(out, all.n >= 0);
}
