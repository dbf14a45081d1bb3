/* ref.h - parts of the portable kernel set that fill each other. */
#ifndef MICA_KERN_REF_REF_H
#define MICA_KERN_REF_REF_H
#include "kern/kern.h"

void mica_ref_fill_matmul(mica_kernels *k);

#endif
