#include "prices.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "load.h"
#include "share.h"

int mica_prices_load(const mica_opts *o, mica_prices **table)
{
    char path[4096], *text;
    size_t length;
    mica_error err;
    *table = NULL;
    if (!o->prices && !mica_share_find("prices.json", path))
        return CODE_OK;
    int code = mica_load_file(o->prices ? o->prices : path, &text, &length);
    if (code != CODE_OK)
        return code;
    mica_status status = mica_prices_read(text, length, table, &err);
    free(text);
    return status ? mica_load_failed(&err) : CODE_OK;
}

int mica_prices_electricity(const mica_opts *o, mica_usd_per_kwh *price, char from[80])
{
    mica_prices *table;
    bool given = o->usd_per_kwh >= 0;
    price->v = given ? o->usd_per_kwh : NAN;
    if (from)
        snprintf(from, 80, "%s", given ? "as given" : "");
    int code = given ? CODE_OK : mica_prices_load(o, &table);
    if (given || code != CODE_OK || !table)
        return code;
    *price = table->electricity;
    if (from)
        snprintf(from, 80, "price table of %s", table->date);
    mica_free(table);
    return CODE_OK;
}
