/* nats_rate.c - what one NATS server with JetStream does here a second: the messages that a campaign with many workers sends.
 * Makes a stream of its own, MICA_RATE, and removes it.
 *
 *     nats_rate URL [SECONDS] [RESULT BYTES]
 *
 * Prints one JSON object; bench/nats_sim starts a server, runs this, and puts the numbers into its model. */
#include <nats/nats.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

static const char stream[] = "MICA_RATE", subject[] = "mica.rate.x", durable[] = "rate";
enum { BATCH = 64, WORK_BYTES = 250 };

static natsConnection *connection;
static jsCtx *js;

static void need(natsStatus s, const char *what)
{
    if (s == NATS_OK)
        return;
    fprintf(stderr, "nats_rate: %s: %s\n", what, natsStatus_GetText(s));
    exit(1);
}

static void make(void)
{
    jsStreamConfig config;
    const char *subjects[] = {"mica.rate.*"};
    jsStreamConfig_Init(&config);
    config.Name = stream;
    config.Subjects = subjects;
    config.SubjectsLen = 1;
    config.Retention = js_WorkQueuePolicy;
    config.Storage = js_FileStorage;
    js_DeleteStream(js, stream, NULL, NULL);
    need(js_AddStream(NULL, js, &config, NULL, NULL), "the stream");
}

static double since(int64_t start_ns)
{
    return (double)(mica_now_ns() - start_ns) / 1e9;
}

/* One after the other, each acknowledged by the server. */
static double publish_sync(double seconds, int bytes)
{
    char *data = calloc(1, (size_t)bytes);
    int64_t n = 0, start_ns = mica_now_ns();
    while (data && since(start_ns) < seconds) {
        char id[40];
        jsPubOptions options;
        jsPubOptions_Init(&options);
        snprintf(id, sizeof id, "%lld-%d", (long long)n++, bytes);
        options.MsgId = id;
        need(js_Publish(NULL, js, subject, data, bytes, &options, NULL), "a message");
    }
    free(data);
    return (double)n / since(start_ns);
}

/* As many at a time as the server takes: what thousands of clients amount to. */
static double publish_async(double seconds, int bytes)
{
    char *data = calloc(1, (size_t)bytes);
    int64_t n = 0, start_ns = mica_now_ns();
    while (data && since(start_ns) < seconds) {
        for (int i = 0; i < BATCH; i++, n++)
            need(js_PublishAsync(js, subject, data, bytes, NULL), "a message");
        need(js_PublishAsyncComplete(js, NULL), "the acknowledgements");
    }
    free(data);
    return (double)n / since(start_ns);
}

static natsSubscription *subscribe(void)
{
    natsSubscription *sub;
    jsSubOptions options;
    jsSubOptions_Init(&options);
    options.Stream = stream;
    options.Config.MaxAckPending = -1;
    need(js_PullSubscribe(&sub, js, subject, durable, NULL, &options, NULL), "the consumer");
    return sub;
}

/* A worker's round: ask for one, say that it is in work, acknowledge it and wait for the server's word. */
static double take_one_by_one(natsSubscription *sub, double seconds)
{
    int64_t n = 0, start_ns = mica_now_ns();
    while (since(start_ns) < seconds) {
        natsMsgList list = {NULL, 0};
        need(natsSubscription_Fetch(&list, sub, 1, 2000, NULL), "a shard");
        need(natsMsg_InProgress(list.Msgs[0], NULL), "a heartbeat");
        need(natsMsg_AckSync(list.Msgs[0], NULL, NULL), "an acknowledgement");
        natsMsgList_Destroy(&list);
        n++;
    }
    return (double)n / since(start_ns);
}

/* The coordinator's: many results at a time. */
static double take_many(natsSubscription *sub, double seconds)
{
    int64_t n = 0, start_ns = mica_now_ns();
    double took = 0;
    natsMsgList list = {NULL, 0};
    while (since(start_ns) < seconds && natsSubscription_Fetch(&list, sub, BATCH, 500, NULL) == NATS_OK) {
        for (int i = 0; i < list.Count; i++, n++)
            need(natsMsg_Ack(list.Msgs[i], NULL), "an acknowledgement");
        natsMsgList_Destroy(&list);
        need(natsConnection_Flush(connection), "the connection");
        took = since(start_ns); /* the stream may come to its end before the time does */
    }
    return (double)n / took;
}

static double beats(natsSubscription *sub, double seconds)
{
    natsMsgList list = {NULL, 0};
    int64_t n = 0, start_ns;
    need(natsSubscription_Fetch(&list, sub, 1, 2000, NULL), "a shard");
    start_ns = mica_now_ns();
    while (since(start_ns) < seconds) {
        for (int i = 0; i < 100 * BATCH; i++, n++)
            need(natsMsg_InProgress(list.Msgs[0], NULL), "a heartbeat");
        need(natsConnection_Flush(connection), "the connection"); /* the server has read them all */
    }
    double rate = (double)n / since(start_ns);
    natsMsgList_Destroy(&list);
    return rate;
}

/* What a restart of the server costs: everyone comes back. */
static double connects(const char *url, double seconds)
{
    int64_t n = 0, start_ns = mica_now_ns();
    for (; since(start_ns) < seconds; n++) {
        natsConnection *other;
        need(natsConnection_ConnectTo(&other, url), "a connection");
        natsConnection_Destroy(other);
    }
    return (double)n / since(start_ns);
}

int main(int argc, char **argv)
{
    double seconds = argc > 2 ? atof(argv[2]) : 3;
    int result_bytes = argc > 3 ? atoi(argv[3]) : 100000;
    if (argc < 2 || !(seconds > 0) || result_bytes < 1) {
        fprintf(stderr, "usage: nats_rate URL [SECONDS] [RESULT BYTES]\n");
        return 2;
    }
    need(natsConnection_ConnectTo(&connection, argv[1]), "the connection");
    need(natsConnection_JetStream(&js, connection, NULL), "JetStream");
    make();
    double sync = publish_sync(seconds, WORK_BYTES), async = publish_async(seconds, WORK_BYTES);
    natsSubscription *sub = subscribe();
    double rounds = take_one_by_one(sub, seconds), beat = beats(sub, seconds), many = take_many(sub, seconds);
    natsSubscription_Destroy(sub);
    make();
    double results = publish_async(seconds, result_bytes);
    js_DeleteStream(js, stream, NULL, NULL);
    double connected = connects(argv[1], seconds);
    printf("{\"connects_per_s\": %.0f, \"publish_sync_per_s\": %.0f, \"publish_async_per_s\": %.0f, \"worker_rounds_per_s\": "
           "%.0f, \"heartbeats_per_s\": %.0f, "
           "\"results_taken_per_s\": %.0f, \"result_bytes\": %d, \"result_publish_per_s\": %.0f}\n",
           connected, sync, async, rounds, beat, many, result_bytes, results);
    jsCtx_Destroy(js);
    natsConnection_Destroy(connection);
    nats_Close();
    return 0;
}
