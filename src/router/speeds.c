#include "router/speeds.h"

#include <math.h>

#include "device/figures.h"

void mica_route_speeds(const char *figures, const char *model_path, const char *sysroot, mica_route_rung_state *out)
{
    char key[MICA_FIGURES_KEY];
    mica_figures_context here;
    mica_figures f;
    if (mica_figures_key(model_path, key, NULL) || mica_figures_load(figures, key, &f, NULL))
        return;
    mica_figures_context_here(sysroot, f.context.kernels, &here); /* with the kernels that it was measured with */
    if (!mica_figures_hold(&f.context, &here))
        return;
    if (f.prefill_tps > 0)
        out->prefill_tps = f.prefill_tps;
    if (f.decode_tps > 0)
        out->decode_tps = f.decode_tps;
    if (f.joules_per_token > 0 && f.decode_tps > 0)
        out->watts = f.joules_per_token * f.decode_tps;
}
