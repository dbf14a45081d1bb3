/* libFuzzer target: bytes of a connection. Whatever they are, and however they come in pieces, the parser ends in the same
 * state with the same request or the same refusal; what is whole goes through the table of routes, the keys and the origins. */
#include "fuzz_util.h"
#include "serve/http.h"

/* One request after the other, as a connection reads them; returns how many were whole. `last` is the state at the end. */
static size_t feed(mica_http_parse *p, const uint8_t *data, size_t size, size_t piece)
{
    size_t whole = 0;
    mica_http_start(p, 1 << 16);
    for (size_t at = 0; at < size && p->state != MICA_HTTP_BAD;) {
        size_t n = piece < size - at ? piece : size - at, taken = mica_http_feed(p, (const char *)data + at, n);
        if (taken > n)
            abort();
        at += taken;
        bool moved = taken > 0;
        if (p->state == MICA_HTTP_HEAD_DONE) {
            mica_http_want_body(p);
            moved = true;
        }
        if (p->state == MICA_HTTP_WHOLE && at < size) {
            whole++;
            mica_http_end(p);
            mica_http_start(p, 1 << 16);
            moved = true;
        }
        if (!moved)
            abort(); /* it would never end */
    }
    return whole;
}

static void check_fault(const mica_fault *fault)
{
    char *json = mica_fault_json(fault);
    if (fault->status < 400 || fault->status > 599 || !json || strlen(json) >= 4096)
        abort();
    fuzz_check_text(json);
    free(json);
}

static void check_request(const mica_http_parse *p)
{
    static const char *const keys[] = {NULL, "secret"}, *const origins[] = {NULL, "*", "http://app.test"};
    for (int i = 0; i < 6; i++) {
        static mica_server s; /* large: keys have their room in it */
        mica_fault fault = {.status = 0};
        char allow[64];
        size_t route;
        bool has_key;
        memset(&s, 0, sizeof s);
        s.options.cors_origin = origins[i % 3];
        snprintf(s.address, sizeof s.address, "http://127.0.0.1:8080");
        if (keys[i / 3] && mica_keys_set(&s.keys, keys[i / 3], NULL))
            abort();
        bool found = mica_route_find(p, &route, allow, &fault);
        bool good = found && mica_guard_allows(&s, p, route, &fault);
        if (!good)
            check_fault(&fault);
        if (good && keys[i / 3] && !mica_route_at(route)->open && !mica_http_header_of(p, "authorization"))
            abort();
        uint64_t client = mica_guard_client(&s, p, 7, &has_key);
        if (!has_key && client != 7)
            abort();
        const char *cors = mica_guard_cors(&s, p);
        if (cors && (!s.options.cors_origin || strpbrk(cors, "\r\n")))
            abort(); /* it becomes a line of the answer */
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mica_http_parse one, all;
    if (size > 1 << 17)
        return 0;
    size_t n_one = feed(&one, data, size, 1), n_all = feed(&all, data, size, size + 1);
    if (n_one != n_all || one.state != all.state || one.fault.status != all.fault.status ||
        strcmp(one.fault.message, all.fault.message) != 0 || one.body.length != all.body.length ||
        (one.body.length > 0 && memcmp(one.body.data, all.body.data, one.body.length) != 0))
        abort(); /* where the bytes are cut makes a difference */
    if (all.state == MICA_HTTP_BAD)
        check_fault(&all.fault);
    else if (all.state != MICA_HTTP_HEAD)
        check_request(&all);
    mica_http_end(&one);
    mica_http_end(&all);
    return 0;
}
