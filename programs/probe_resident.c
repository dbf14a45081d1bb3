/* probe_resident.c - which GGUF files processes of this user have mapped. Other users' maps cannot be read, and are not. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device/sysfile.h"
#include "probe.h"
#include "term.h"

enum { LINE = 4608, MAX_PROCESSES = 32768, MAX_MAPPINGS = 65536, MAX_FOUND = 256 };

typedef struct scan {
    const char *sysroot;
    long pid;
    char process[64];
    json_t *found;
    json_t *entry; /* of the mapping that the lines belong to, borrowed from found; NULL: it is of no GGUF file */
} scan;

/** The entry of this process for a file, made if it is not there; NULL if there are too many. */
static json_t *entry_of(scan *s, const char *file)
{
    json_t *entry;
    size_t i;
    json_array_foreach(s->found, i,
                       entry) if (json_integer_value(json_object_get(entry, "pid")) == s->pid &&
                                  strcmp(json_string_value(json_object_get(entry, "file")), file) == 0) return entry;
    if (json_array_size(s->found) == MAX_FOUND)
        return NULL;
    entry = json_pack("{s:o, s:I, s:s, s:I, s:I}", "file", mica_json_text(file, strlen(file)), "pid", (json_int_t)s->pid,
                      "process", s->process, "mapped_bytes", (json_int_t)0, "resident_bytes", (json_int_t)0);
    json_array_append_new(s->found, entry);
    return entry;
}

static void add_bytes(json_t *entry, const char *name, long long bytes)
{
    json_object_set_new(entry, name, json_integer(json_integer_value(json_object_get(entry, name)) + bytes));
}

/** A line of smaps: the head of a mapping, "7f00-7f10 r--s 00000000 fe:00 12 /path/x.gguf", or "Rss:  12 kB" of it. */
static void take_line(scan *s, char *line)
{
    unsigned long long from, to, kilobytes;
    line[strcspn(line, "\n")] = '\0';
    size_t n = strlen(line);
    if (sscanf(line, "%llx-%llx ", &from, &to) == 2) {
        char *path = strchr(line, '/');
        s->entry = path && n > 5 && strcmp(line + n - 5, ".gguf") == 0 ? entry_of(s, path) : NULL;
        if (s->entry)
            add_bytes(s->entry, "mapped_bytes", (long long)(to - from));
    } else if (s->entry && sscanf(line, "Rss: %llu kB", &kilobytes) == 1) {
        add_bytes(s->entry, "resident_bytes", (long long)kilobytes * 1024);
    }
}

static FILE *open_of(const scan *s, const char *name)
{
    char path[MICA_SYSPATH_MAX];
    struct stat info;
    int n = snprintf(path, sizeof path, "%s/proc/%ld/%s", s->sysroot ? s->sysroot : "", s->pid, name);
    if (n < 0 || (size_t)n >= sizeof path || stat(path, &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != geteuid())
        return NULL;
    return fopen(path, "re");
}

/** Maps are read first: smaps costs the kernel a walk over every page table. */
static bool maps_gguf(const scan *s)
{
    char line[LINE];
    FILE *f = open_of(s, "maps");
    bool found = false;
    for (int i = 0; f && !found && i < MAX_MAPPINGS && fgets(line, sizeof line, f); i++)
        found = strstr(line, ".gguf\n") != NULL;
    if (f)
        fclose(f);
    return found;
}

static void scan_process(scan *s)
{
    char line[LINE], folder[32];
    if (!maps_gguf(s))
        return;
    snprintf(folder, sizeof folder, "/proc/%ld", s->pid);
    if (!mica_sysfile_word(s->sysroot, folder, "comm", s->process, sizeof s->process))
        snprintf(s->process, sizeof s->process, "?");
    FILE *f = open_of(s, "smaps");
    s->entry = NULL;
    while (f && fgets(line, sizeof line, f))
        take_line(s, line);
    if (f)
        fclose(f);
}

json_t *mica_probe_resident(const char *sysroot)
{
    scan s = {.sysroot = sysroot, .found = json_array()};
    char path[MICA_SYSPATH_MAX];
    int n = snprintf(path, sizeof path, "%s/proc", sysroot ? sysroot : "");
    DIR *folder = n > 0 && (size_t)n < sizeof path ? opendir(path) : NULL;
    int count = 0;
    for (struct dirent *e; folder && count < MAX_PROCESSES && (e = readdir(folder));) {
        char *end;
        s.pid = strtol(e->d_name, &end, 10);
        if (*end != '\0' || s.pid <= 0)
            continue;
        count++;
        scan_process(&s);
    }
    if (folder)
        closedir(folder);
    return s.found;
}
