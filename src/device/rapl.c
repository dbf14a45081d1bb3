#include "device/rapl.h"

#include <stdio.h>
#include <string.h>

#include "device/sysfile.h"

enum { PACKAGES = 8, PARTS = 5 }; /* zones intel-rapl:P, and intel-rapl:P:M below them */

static void add_domain(const char *sysroot, const char *zone, mica_rapl *out)
{
    char folder[96];
    snprintf(folder, sizeof folder, "/sys/class/powercap/%s", zone);
    if (out->n == MICA_RAPL_DOMAINS)
        return;
    mica_rapl_domain *d = &out->domain[out->n];
    if (!mica_sysfile_word(sysroot, folder, "name", d->name, sizeof d->name))
        return;
    snprintf(d->zone, sizeof d->zone, "%s", zone);
    d->counted = false;
    if (!mica_sysfile_int_in(sysroot, folder, "energy_uj", &d->uj) || d->uj < 0) {
        d->uj = -1;
        out->denied |= mica_sysfile_denied(sysroot, folder, "energy_uj");
    }
    if (!mica_sysfile_int_in(sysroot, folder, "max_energy_range_uj", &d->range) || d->range <= 0)
        d->range = -1;
    out->n++;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static void choose_counted(mica_rapl *out)
{
    bool package = false;
    for (int i = 0; i < out->n; i++)
        package |= begins(out->domain[i].name, "package") && out->domain[i].uj >= 0;
    for (int i = 0; i < out->n; i++) {
        mica_rapl_domain *d = &out->domain[i];
        d->counted =
            d->uj >= 0 && (package ? begins(d->name, "package") || strcmp(d->name, "dram") == 0 : strcmp(d->name, "psys") == 0);
    }
}

void mica_rapl_read(const char *sysroot, mica_rapl *out)
{
    char zone[40];
    out->n = 0;
    out->denied = false;
    for (int p = 0; p < PACKAGES; p++) {
        int before = out->n;
        snprintf(zone, sizeof zone, "intel-rapl:%d", p);
        add_domain(sysroot, zone, out);
        for (int m = 0; m < PARTS && out->n > before; m++) {
            snprintf(zone, sizeof zone, "intel-rapl:%d:%d", p, m);
            add_domain(sysroot, zone, out);
        }
    }
    choose_counted(out);
}

int64_t mica_rapl_step(int64_t before, int64_t after, int64_t range)
{
    if (before < 0 || after < 0)
        return -1;
    if (after >= before)
        return after - before;
    return range > before ? range - before + after : -1;
}
