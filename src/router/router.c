/* router.c - the current policy of a file. Invariant: `policy` is never NULL and the router holds one reference of it; whoever
 * takes it out gets one more under the lock, so that a policy that is replaced lives as long as somebody decides by it. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "router/policy.h"

struct mica_router {
    pthread_mutex_t lock;
    mica_route_policy *policy;
    char *path, *share; /* share: NULL none */
};

mica_status mica_router_new(const char *policy_path, const char *share, mica_router **out, mica_error *err)
{
    *out = NULL;
    mica_router *router = calloc(1, sizeof *router);
    if (!router)
        return mica_fail_nomem(err, sizeof *router, "the router");
    pthread_mutex_init(&router->lock, NULL);
    router->path = strdup(policy_path);
    router->share = share ? strdup(share) : NULL;
    mica_status status = router->path && (router->share || !share) ? MICA_OK : mica_fail_nomem(err, 1, "the router");
    if (!status)
        status = mica_route_policy_open(policy_path, share, &router->policy, err);
    if (status)
        mica_router_free(router);
    else
        *out = router;
    return status;
}

void mica_router_free(mica_router *router)
{
    if (!router)
        return;
    mica_route_policy_release(router->policy);
    pthread_mutex_destroy(&router->lock);
    free(router->path);
    free(router->share);
    free(router);
}

mica_route_policy *mica_router_policy(mica_router *router)
{
    pthread_mutex_lock(&router->lock);
    mica_route_policy *policy = router->policy;
    mica_route_policy_retain(policy);
    pthread_mutex_unlock(&router->lock);
    return policy;
}

mica_status mica_router_reload(mica_router *router, mica_error *err)
{
    mica_route_policy *fresh;
    mica_error reason;
    if (mica_route_policy_open(router->path, router->share, &fresh, &reason))
        return mica_fail_at(err, reason.code, reason.position, "%.420s; the policy in use stays", reason.message);
    pthread_mutex_lock(&router->lock);
    mica_route_policy *old = router->policy;
    router->policy = fresh;
    pthread_mutex_unlock(&router->lock);
    mica_route_policy_release(old);
    return MICA_OK;
}
