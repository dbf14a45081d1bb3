#include "bench/host.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/map.h"
#include "device/cpus.h"
#include "device/memory.h"

enum { PIECE = 1 << 20 };

json_t *mica_host_describe(const char *sysroot)
{
    char name[128], reason[MICA_MEMORY_REASON] = "";
    struct utsname system;
    int64_t total = mica_memory_total(sysroot), available = -1;
    mica_thread_plan plan;
    mica_cpu_name(sysroot, name);
    if (mica_memory_available(sysroot, &available, reason, NULL))
        available = -1;
    int cpus = mica_thread_plan_all(sysroot, &plan, NULL) ? 0 : plan.n_threads;
    bool known = uname(&system) == 0;
    return json_pack("{s:s, s:i, s:s, s:I, s:I, s:s, s:s, s:s}", "cpu", name, "cores", cpus, "cores_reason",
                     cpus ? plan.reason : "", "memory_bytes", (json_int_t)total, "available_bytes",
                     (json_int_t)available, "system", known ? system.sysname : "", "kernel", known ? system.release : "",
                     "architecture", known ? system.machine : "");
}

void mica_host_key(const json_t *host, char out[160])
{
    const char *cpu = json_string_value(json_object_get(host, "cpu"));
    snprintf(out, 160, "%.120s, %lld bytes", cpu ? cpu : "",
             (long long)json_integer_value(json_object_get(host, "memory_bytes")));
}

static mica_status hash_file(int fd, const char *path, uint8_t *piece, bool (*stop)(void *user), void *user, uint8_t digest[32],
                             mica_error *err)
{
    crypto_hash_sha256_state state;
    ssize_t n;
    crypto_hash_sha256_init(&state);
    while ((n = read(fd, piece, PIECE)) != 0) {
        if (n < 0 && errno != EINTR)
            return mica_fail(err, MICA_IO_ERROR, "cannot read %s: %s", mica_path_tail(path), strerror(errno));
        if (n > 0)
            crypto_hash_sha256_update(&state, piece, (unsigned long long)n);
        if (stop && stop(user))
            return mica_fail(err, MICA_CANCELLED, "stopped while the model's file was read");
    }
    crypto_hash_sha256_final(&state, digest);
    return MICA_OK;
}

mica_status mica_host_sha256(const char *path, bool (*stop)(void *user), void *user, char out[65], mica_error *err)
{
    uint8_t digest[32], *piece = malloc(PIECE);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    mica_status status;
    if (!piece)
        status = mica_fail_nomem(err, PIECE, "reading the model's file");
    else if (fd < 0)
        status = mica_fail(err, MICA_IO_ERROR, "cannot open %s: %s", mica_path_tail(path), strerror(errno));
    else
        status = hash_file(fd, path, piece, stop, user, digest, err);
    if (fd >= 0)
        close(fd);
    free(piece);
    if (!status)
        sodium_bin2hex(out, 65, digest, sizeof digest);
    return status;
}
