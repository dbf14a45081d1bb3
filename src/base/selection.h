/* selection.h - what a build leaves out. A build without choices has everything and defines none of this; cmake/selection.cmake defines,
 * for each row of a list that is left out,
 *
 *     MICA_WITHOUT_<kind>_<name>   as   0, MICA_ROW_DROPPED
 *
 * and for the messages what was chosen. Kinds: ARCH (model/arch_list.h), TYPE (quant/quant_list.h), PRODUCT (the fast products of such a
 * type, which the portable one stands in for), KERNELS (kern/isa_list.h).
 * MICA_NO_CONSTRAINTS and MICA_NO_TEMPLATES: whole parts that are left out; session/no_constraints.c and text/no_templates.c refuse in
 * their place.
 */
#ifndef MICA_BASE_SELECTION_H
#define MICA_BASE_SELECTION_H

#define MICA_ROW_KEPT(...) __VA_ARGS__
#define MICA_ROW_DROPPED(...)
#define MICA_SECOND(a, b, ...) b
#define MICA_CHOOSE(...) MICA_SECOND(__VA_ARGS__)

/** The rest of the arguments, unless the build leaves `name` ("TYPE_q4_1") out: then nothing. */
#define MICA_ROW(name, ...) MICA_CHOOSE(MICA_WITHOUT_##name, MICA_ROW_KEPT, MICA_ROW_KEPT)(__VA_ARGS__)

#ifndef MICA_CHOSEN_ARCHS
#define MICA_CHOSEN_ARCHS "all"
#endif
#ifndef MICA_CHOSEN_TYPES
#define MICA_CHOSEN_TYPES "all"
#endif
#ifndef MICA_CHOSEN_KERNELS
#define MICA_CHOSEN_KERNELS "all"
#endif

#endif
