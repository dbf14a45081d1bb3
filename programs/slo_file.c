#include "slo_file.h"

#include "bench/campaign_figures.h"
#include "bench/slo.h"
#include "load.h"

int mica_slo_file_open(const mica_opts *o, json_t **slo)
{
    mica_error err;
    *slo = NULL;
    if (!o->slo || mica_slo_open(o->slo, slo, &err) == MICA_OK)
        return CODE_OK;
    return mica_term_error("%s: %s", o->slo, err.message);
}

int mica_slo_file_judge(const json_t *slo, const char *name, const json_t *summary)
{
    json_t *broken = json_array(), *text;
    size_t i;
    bool kept = !slo || mica_slo_judge(slo, summary, broken);
    json_array_foreach(broken, i, text) mica_term_error("%s breaks a limit: %s", name, json_string_value(text));
    json_decref(broken);
    return kept ? CODE_OK : CODE_FAILED;
}

int mica_slo_file_judge_campaign(const json_t *slo, mica_store *store, const char *id, const char *name)
{
    json_t *figures;
    mica_error err;
    if (!slo)
        return CODE_OK;
    if (mica_campaign_figures(store, id, &figures, &err))
        return mica_load_failed(&err);
    int code = mica_slo_file_judge(slo, name, figures);
    json_decref(figures);
    return code;
}
