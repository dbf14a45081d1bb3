/* A worker that hangs loses its shard: while its work gets on, the queue keeps the shard for it, however long that takes; once
 * it has not got on for the time after which a worker falls silent, here a second, the queue gives the shard to another one.
 * With a real server on a free port; without the program nats-server the test is skipped. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "bench/campaign_nats_link.h"
#include "bench/worker.h"
#include "bench/worker_beat.h"

#define ACK_WAIT_S 2.0 /* of the queue; with the stall, far enough from what a busy machine adds */
#define STALL_S    1.0
#define BEAT_S     0.1

typedef struct queue {
    char folder[64], url[64];
    pid_t server;
    mica_nats_link link;
    natsSubscription *work;
} queue;

/* ---- The server ---- */

static int free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s, (struct sockaddr *)&address, size), 0);
    assert_int_equal(getsockname(s, (struct sockaddr *)&address, &size), 0);
    close(s);
    return ntohs(address.sin_port);
}

static pid_t start_server(const char *folder, int port)
{
    char text[16], log[96];
    snprintf(text, sizeof text, "%d", port);
    snprintf(log, sizeof log, "%s/log", folder);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed assertion must not leave it behind */
        execlp("nats-server", "nats-server", "-a", "127.0.0.1", "-p", text, "-js", "-sd", folder, "-l", log, (char *)NULL);
        _exit(127);
    }
    return child;
}

static void open_link(queue *q)
{
    mica_nats_options options = {.url = q->url};
    mica_error err = {0};
    int64_t deadline = mica_now_ns() + 20 * INT64_C(1000000000);
    while (mica_nats_open(&options, &q->link, &err) != MICA_OK) { /* until it listens */
        assert_int_equal(waitpid(q->server, NULL, WNOHANG), 0);
        if (mica_now_ns() > deadline)
            fail_msg("%s", err.message);
        mica_nats_close(&q->link);
        q->link = (mica_nats_link){0};
        usleep(20000);
    }
}

static void make_work(queue *q)
{
    jsConsumerConfig config;
    jsSubOptions options;
    mica_error err;
    assert_int_equal(mica_nats_streams_make(&q->link, &err), MICA_OK);
    jsConsumerConfig_Init(&config);
    config.Durable = "work-t";
    config.FilterSubject = "mica.work.t.*";
    config.AckPolicy = js_AckExplicit;
    config.AckWait = (int64_t)(ACK_WAIT_S * 1e9);
    assert_int_equal(js_AddConsumer(NULL, q->link.js, MICA_STREAM_WORK, &config, NULL, NULL), NATS_OK);
    jsSubOptions_Init(&options);
    options.Stream = MICA_STREAM_WORK;
    options.Consumer = "work-t";
    assert_int_equal(js_PullSubscribe(&q->work, q->link.js, "mica.work.t.*", "work-t", NULL, &options, NULL), NATS_OK);
    assert_int_equal(mica_nats_publish(&q->link, "mica.work.t.0", "id-0", "shard", 5, NULL, &err), MICA_OK);
}

static int set_up(void **state)
{
    static queue q;
    q = (queue){.folder = "/tmp/mica-beat-XXXXXX"};
    assert_non_null(mkdtemp(q.folder));
    int port = free_port();
    snprintf(q.url, sizeof q.url, "nats://127.0.0.1:%d", port);
    q.server = start_server(q.folder, port);
    assert_true(q.server > 0);
    open_link(&q);
    make_work(&q);
    *state = &q;
    return 0;
}

static int tear_down(void **state)
{
    queue *q = *state;
    char command[96];
    natsSubscription_Destroy(q->work);
    mica_nats_close(&q->link);
    kill(q->server, SIGKILL);
    waitpid(q->server, NULL, 0);
    snprintf(command, sizeof command, "rm -r '%s'", q->folder);
    return system(command);
}

/* ---- The worker, and another one that asks ---- */

static natsMsg *fetch(queue *q, double seconds)
{
    natsMsgList list = {NULL, 0};
    natsStatus s = natsSubscription_Fetch(&list, q->work, 1, (int64_t)(seconds * 1e3), NULL);
    if (s != NATS_OK) {
        assert_int_equal(s, NATS_TIMEOUT);
        return NULL;
    }
    assert_int_equal(list.Count, 1);
    natsMsg *msg = list.Msgs[0];
    list.Msgs[0] = NULL;
    natsMsgList_Destroy(&list);
    return msg;
}

static void test_a_worker_that_hangs_loses_its_shard(void **state)
{
    queue *q = *state;
    static mica_beat beat; /* its thread goes on where an assertion leaves this function */
    mica_error err;
    natsMsg *msg = fetch(q, 5), *again;
    assert_non_null(msg);
    assert_int_equal(mica_beat_start(&beat, msg, BEAT_S, STALL_S, &err), MICA_OK);

    /* It gets on, for longer than the queue waits for a silent worker and longer than it may hang: nobody else gets the shard. */
    int64_t end = mica_now_ns() + (int64_t)((ACK_WAIT_S + 2 * STALL_S) * 1e9);
    while (mica_now_ns() < end) {
        mica_beat_move(&beat);
        assert_null(fetch(q, BEAT_S));
    }
    mica_beat_move(&beat);
    int64_t stopped = mica_now_ns();

    /* It hangs: it goes on telling for STALL_S, and ACK_WAIT_S after the last word another one gets the shard. */
    do
        again = fetch(q, 1); /* the client library may take the end of the request before for that of this one */
    while (!again && mica_now_ns() - stopped < 30 * INT64_C(1000000000));
    double after = (double)(mica_now_ns() - stopped) / 1e9;
    assert_non_null(again);
    assert_memory_equal(natsMsg_GetData(again), "shard", 5);
    assert_true(after > ACK_WAIT_S + STALL_S / 4);
    print_message("the shard went to another worker %.2f s after the last step\n", after);
    mica_beat_end(&beat);
    assert_int_equal(natsMsg_AckSync(again, NULL, NULL), NATS_OK);
    natsMsg_Destroy(again);
    natsMsg_Destroy(msg);
}

/* What docs/campaign.md says of `mica worker`, which hands this to mica_beat_start(). */
static void test_ten_minutes(void **state)
{
    (void)state;
    assert_true(MICA_WORKER_STALL_S == 600.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_worker_that_hangs_loses_its_shard, set_up, tear_down),
        cmocka_unit_test(test_ten_minutes),
    };
    if (system("nats-server --version >/dev/null 2>&1") != 0) {
        fprintf(stderr, "skipped: nats-server is not there\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
