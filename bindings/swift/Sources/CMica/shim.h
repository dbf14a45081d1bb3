/* What the Swift module sees of the C interface. The compiler finds it with -Xcc -I<include>. */
#include "mica/mica.h"
#include "mica/mica_device.h"
#include "mica/mica_tools.h"
