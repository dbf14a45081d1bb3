/* math.h - the C library's, but for fmaf(): see fmaf.c. */
#ifndef MICA_WEB_MATH_H
#define MICA_WEB_MATH_H
#include_next <math.h>

#define fmaf mica_web_fmaf
float fmaf(float x, float y, float z);

#endif
