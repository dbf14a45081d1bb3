#include "electricity.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "load.h"
#include "share.h"

int mica_electricity_price(const mica_opts *o, mica_usd_per_kwh *price, char from[80])
{
    char path[4096], *text;
    size_t length;
    mica_prices *table;
    mica_error err;
    price->v = o->usd_per_kwh >= 0 ? o->usd_per_kwh : NAN;
    if (from)
        snprintf(from, 80, "%s", o->usd_per_kwh >= 0 ? "as given" : "");
    if (o->usd_per_kwh >= 0 || (!o->prices && !mica_share_find("prices.json", path)))
        return CODE_OK;
    int code = mica_load_file(o->prices ? o->prices : path, &text, &length);
    if (code != CODE_OK)
        return code;
    mica_status status = mica_prices_read(text, length, &table, &err);
    free(text);
    if (status)
        return mica_load_failed(&err);
    *price = table->electricity;
    if (from)
        snprintf(from, 80, "price table of %s", table->date);
    mica_free(table);
    return CODE_OK;
}
