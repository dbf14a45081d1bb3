/* cost.h - what cost.c and the program share beside the public functions. */
#ifndef MICA_ROUTER_COST_H
#define MICA_ROUTER_COST_H
#include "mica/mica_ops.h"

double mica_days_of(mica_seconds s);

#endif
