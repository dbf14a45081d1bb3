/* cpu_name.c - what the CPU is called. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cpus.h"
#include "device/sysfile.h"

enum { INFO_BYTES = 1 << 20 }; /* some kilobytes for each CPU */

/** The text after "key\t: " at the start of a line, to its end; NULL if there is none. */
static const char *info_value(const char *text, const char *key)
{
    size_t length = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, length) == 0 && line[length + strspn(line + length, " \t")] == ':')
            return line + length + strspn(line + length, " \t:");
    }
    return NULL;
}

void mica_cpu_name(const char *sysroot, char out[128])
{
    /* ARM kernels tell the board at most, or nothing. */
    static const char *const keys[] = {"model name", "Hardware", "Model", "cpu model"};
    char *text = malloc(INFO_BYTES);
    const char *value = NULL;
    if (text && mica_sysfile_read(sysroot, "/proc/cpuinfo", text, INFO_BYTES))
        for (size_t i = 0; i < sizeof keys / sizeof *keys && !value; i++)
            value = info_value(text, keys[i]);
    size_t length = value ? strcspn(value, "\n") : 0;
    snprintf(out, 128, "%.*s", length ? (int)(length < 127 ? length : 127) : 127, length ? value : "unknown");
    free(text);
    for (char *c = out; *c; c++)
        if (*c < 0x20 || *c > 0x7e)
            *c = '?';
}
