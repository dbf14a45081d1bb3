/* guard.c - who may ask: the API key, the origin of web pages, and the name under which the server was called. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/xxh64.h"
#include "serve/http.h"

const char *mica_guard_cors(const mica_server *s, const mica_http_parse *p)
{
    const char *allowed = s->options.cors_origin, *origin = mica_http_header_of(p, "origin");
    if (!allowed || !origin)
        return NULL;
    return strcmp(allowed, "*") == 0 ? "*" : strcmp(allowed, origin) == 0 ? origin : NULL;
}

/* "localhost:8080", "127.0.0.1", "[::1]:8080": names that only this machine has. */
static bool is_loopback_name(const char *host)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t n = strlen(names[i]);
        if (strncasecmp(host, names[i], n) == 0 && (host[n] == '\0' || host[n] == ':'))
            return true;
    }
    return false;
}

/* Without a key only the address protects the server, and a web page in a browser on this machine gets around that: by asking
 * from its own origin without reading the answer, or under a name of its own that it lets point to 127.0.0.1. Browsers tell
 * both. */
static bool comes_from_here(const mica_server *s, const mica_http_parse *p, mica_fault *fault)
{
    const char *host = mica_http_header_of(p, "host"), *origin = mica_http_header_of(p, "origin");
    if (host && strcmp(host, s->address + 7) != 0 && !is_loopback_name(host))
        return mica_fault_set(fault, 403, "host_not_allowed", NULL,
                              "without an API key the server answers only to localhost, 127.0.0.1 and [::1], not to \"%.60s\"",
                              host);
    bool own = origin && strncmp(origin, "http://", 7) == 0 && host && strcmp(origin + 7, host) == 0;
    if (origin && !own && !mica_guard_cors(s, p))
        return mica_fault_set(fault, 403, "origin_not_allowed", NULL,
                              "pages of the origin \"%.60s\" may not ask: start the server with --cors-origin", origin);
    return true;
}

bool mica_guard_allows(const mica_server *s, const mica_http_parse *p, size_t route, mica_fault *fault)
{
    if (s->keys.n == 0)
        return comes_from_here(s, p, fault);
    const char *given = mica_http_header_of(p, "authorization");
    if (mica_route_at(route)->open || mica_keys_allow(&s->keys, given))
        return true;
    return mica_fault_set(fault, 401, "invalid_api_key", NULL, "%s",
                          given ? "the API key is wrong" : "an API key is needed: Authorization: Bearer KEY");
}

uint64_t mica_guard_client(const mica_server *s, const mica_http_parse *p, uint64_t address, bool *has_key)
{
    const char *given = mica_http_header_of(p, "authorization");
    *has_key = s->keys.n > 0 && given && mica_keys_allow(&s->keys, given);
    if (!*has_key)
        return address;
    given += strcspn(given, " "); /* behind "Bearer" */
    given += strspn(given, " ");
    return mica_xxh64_of(given, strlen(given));
}
