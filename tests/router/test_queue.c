/* The queue on the disk: once for each key, in order, whatever ends the process between two steps. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "mica/mica_router.h"

static char folder[64], path[96], effects[96];
static mica_error err;

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/mica-queue-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/queue.db", folder);
    snprintf(effects, sizeof effects, "%s/effects", folder);
    return 0;
}

static int tear_down(void **state)
{
    static const char *const names[] = {"queue.db", "queue.db-wal", "queue.db-shm", "queue.db.lock", "effects"};
    (void)state;
    char name[128];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(name, sizeof name, "%s/%s", folder, names[i]);
        unlink(name);
    }
    return rmdir(folder);
}

static mica_held *open_queue(void)
{
    mica_held *held;
    assert_int_equal(mica_held_open(path, &held, &err), MICA_OK);
    return held;
}

static int64_t put(mica_held *held, const char *key, const char *body)
{
    int64_t id;
    assert_int_equal(mica_held_put(held, key, body, strlen(body), 100, &id, &err), MICA_OK);
    return id;
}

/* ---- What a row is ---- */

typedef struct seen {
    int n;
    mica_held_state state[16];
    bool maybe_sent[16];
    int64_t attempts[16];
    char reply[16][64], note[16][64], key[16][16];
} seen;

static int see(void *user, const mica_held_row *row)
{
    seen *s = user;
    s->state[s->n] = row->state;
    s->maybe_sent[s->n] = row->maybe_sent;
    s->attempts[s->n] = row->attempts;
    snprintf(s->reply[s->n], 64, "%s", row->reply ? row->reply : "-");
    snprintf(s->note[s->n], 64, "%s", row->note);
    snprintf(s->key[s->n++], 16, "%s", row->key);
    return 0;
}

static seen look(mica_held *held)
{
    seen s = {.n = 0};
    assert_int_equal(mica_held_list(held, 0, see, &s, &err), MICA_OK);
    return s;
}

static void test_put_once_for_a_key(void **state)
{
    (void)state;
    struct stat st;
    mica_held *held = open_queue();
    int64_t a = put(held, "a", "{}"), b = put(held, "b", "{}");
    assert_true(a < b);
    assert_true(put(held, "a", "{\"other\":1}") == a);
    assert_int_equal(look(held).n, 2);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    mica_held_close(held);
    held = open_queue(); /* it is on the disk */
    assert_int_equal(look(held).n, 2);
    mica_held_close(held);
}

static void test_limits(void **state)
{
    (void)state;
    int64_t id;
    mica_held *held = open_queue();
    put(held, "a", "{}");
    assert_int_equal(mica_held_put(held, "b", "{}", 2, 1, &id, &err), MICA_OVER_BUDGET);
    assert_int_equal(mica_held_put(held, "", "{}", 2, 9, &id, &err), MICA_INVALID_ARGUMENT);
    char key[80];
    memset(key, 'k', sizeof key);
    key[65] = '\0';
    assert_int_equal(mica_held_put(held, key, "{}", 2, 9, &id, &err), MICA_INVALID_ARGUMENT);
    assert_int_equal(mica_held_drop(held, 99, &err), MICA_INVALID_ARGUMENT);
    assert_int_equal(mica_held_drop(held, 1, &err), MICA_OK);
    assert_int_equal(look(held).n, 0);
    mica_held_close(held);
}

static void test_a_file_that_is_no_queue(void **state)
{
    (void)state;
    mica_held *held;
    FILE *file = fopen(path, "w");
    fprintf(file, "this is no database, but long enough to be looked at as one ...........................................");
    fclose(file);
    assert_int_not_equal(mica_held_open(path, &held, &err), MICA_OK);
    assert_null(held);
    assert_non_null(strstr(err.message, "queue.db"));
}

/* ---- Draining ---- */

typedef struct sender {
    mica_held_verdict verdict[8];
    int n;
    bool maybe_sent;
    char keys[64];
} sender;

static mica_held_verdict send_scripted(void *user, const mica_held_row *row, char **reply, bool *maybe_sent, char note[160])
{
    sender *s = user;
    mica_held_verdict verdict = s->verdict[s->n++];
    strcat(s->keys, row->key);
    if (verdict == MICA_HELD_ANSWERED)
        *reply = strdup("{\"text\":\"yes\"}");
    else
        snprintf(note, 160, "because");
    *maybe_sent = s->maybe_sent;
    return verdict;
}

static void test_verdicts(void **state)
{
    (void)state;
    mica_held *held = open_queue();
    for (int i = 0; i < 4; i++)
        put(held, (char[]){(char)('a' + i), 0}, "{}");
    sender s = {.verdict = {MICA_HELD_ANSWERED, MICA_HELD_AGAIN, MICA_HELD_NEVER, MICA_HELD_STOP}, .maybe_sent = true};
    mica_held_drain drain = {.send = send_scripted, .user = &s};
    assert_int_equal(mica_held_drain_all(held, &drain, &err), MICA_OK);
    assert_string_equal(s.keys, "abcd");
    assert_int_equal(drain.n_done, 1);
    assert_int_equal(drain.n_left, 2);
    seen rows = look(held);
    assert_int_equal(rows.state[0], MICA_HELD_DONE);
    assert_string_equal(rows.reply[0], "{\"text\":\"yes\"}");
    assert_int_equal(rows.state[1], MICA_HELD_WAITING);
    assert_true(rows.maybe_sent[1]);
    assert_string_equal(rows.note[1], "because");
    assert_int_equal(rows.state[2], MICA_HELD_FAILED);
    assert_int_equal(rows.state[3], MICA_HELD_WAITING);
    sender again = {.verdict = {MICA_HELD_STOP}};
    drain = (mica_held_drain){.send = send_scripted, .user = &again};
    assert_int_equal(mica_held_drain_all(held, &drain, &err), MICA_OK);
    assert_string_equal(again.keys, "b"); /* the network is gone: d is not tried */
    mica_held_close(held);
}

static mica_held_verdict send_inner(void *user, const mica_held_row *row, char **reply, bool *maybe_sent, char note[160])
{
    (void)maybe_sent;
    (void)note;
    *reply = strdup("{}");
    if (strcmp(row->key, "late") == 0)
        return MICA_HELD_ANSWERED;
    mica_held *other = open_queue();
    sender s = {.verdict = {MICA_HELD_STOP}};
    mica_held_drain drain = {.send = send_scripted, .user = &s};
    *(mica_status *)user = mica_held_drain_all(other, &drain, &err);
    assert_int_equal(mica_held_drop(other, 1, &err), MICA_INVALID_ARGUMENT); /* it is being sent */
    put(other, "late", "{}");                                                /* others may add meanwhile */
    mica_held_close(other);
    return MICA_HELD_ANSWERED;
}

static void test_one_at_a_time(void **state)
{
    (void)state;
    mica_status second = MICA_OK;
    mica_held *held = open_queue();
    put(held, "a", "{}");
    mica_held_drain drain = {.send = send_inner, .user = &second};
    assert_int_equal(mica_held_drain_all(held, &drain, &err), MICA_OK);
    assert_int_equal(second, MICA_CANCELLED);
    assert_int_equal(drain.n_done, 2); /* what came meanwhile, too */
    mica_held_close(held);
}

/* ---- kill -9 at every step ---- */

typedef struct victim {
    int step, dies_at; /* which step of all is the last */
} victim;

static void die_at(victim *v)
{
    if (v->step++ == v->dies_at)
        raise(SIGKILL);
}

/* A server that honours the key: a line for each request, and the work once. */
static mica_held_verdict send_noted(void *user, const mica_held_row *row, char **reply, bool *maybe_sent, char note[160])
{
    (void)note;
    die_at(user); /* before it leaves */
    FILE *file = fopen(effects, "a");
    fprintf(file, "%s\n", row->key);
    fclose(file);
    *maybe_sent = true;
    die_at(user); /* it has arrived, and the answer is lost */
    *reply = strdup("{\"text\":\"yes\"}");
    return MICA_HELD_ANSWERED;
}

static void on_step(void *user, const char *step, int64_t id)
{
    (void)step;
    (void)id;
    die_at(user);
}

static int drain_in_child(int dies_at)
{
    pid_t child = fork();
    if (child == 0) {
        victim v = {.dies_at = dies_at};
        mica_held *held;
        mica_held_drain drain = {.send = send_noted, .on_step = on_step, .user = &v};
        if (mica_held_open(path, &held, NULL) || mica_held_drain_all(held, &drain, NULL))
            _exit(1);
        mica_held_close(held);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    return status;
}

/* Distinct keys in the server's list, and lines. */
static void count_effects(int *distinct, int *lines)
{
    char line[32], all[256] = ",";
    *distinct = *lines = 0;
    FILE *file = fopen(effects, "r");
    while (file && fgets(line, sizeof line, file)) {
        char marked[40];
        line[strcspn(line, "\n")] = '\0';
        snprintf(marked, sizeof marked, ",%s,", line);
        *distinct += !strstr(all, marked);
        strcat(all, line);
        strcat(all, ",");
        ++*lines;
    }
    if (file)
        fclose(file);
}

static void check_all_done(int deaths)
{
    int distinct, lines;
    mica_held *held = open_queue();
    seen rows = look(held);
    assert_int_equal(rows.n, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(rows.state[i], MICA_HELD_DONE);
        assert_string_equal(rows.reply[i], "{\"text\":\"yes\"}");
        assert_true(rows.attempts[i] <= 1 + deaths);
    }
    mica_held_close(held);
    count_effects(&distinct, &lines);
    assert_int_equal(distinct, 3);         /* each request had its effect */
    assert_in_range(lines, 3, 3 + deaths); /* asked again only where a death left it unknown, and under its key */
}

static void test_killed_at_every_step(void **state)
{
    int step = 0, status = 0;
    for (;; step++) { /* until a run is not killed any more */
        mica_held *held = open_queue();
        for (int i = 0; i < 3; i++)
            put(held, (char[]){(char)('a' + i), 0}, "{}");
        mica_held_close(held);
        status = drain_in_child(step);
        bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
        if (killed) {
            held = open_queue();
            seen rows = look(held);
            for (int i = 0; i < rows.n; i++)
                assert_true(rows.state[i] != MICA_HELD_DONE || strcmp(rows.reply[i], "{\"text\":\"yes\"}") == 0);
            mica_held_close(held);
            assert_int_equal(drain_in_child(-1), 0);
        }
        check_all_done(killed ? 1 : 0);
        tear_down(state);
        assert_int_equal(set_up(state), 0);
        if (!killed)
            break;
    }
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(step, 15); /* five steps for each of three requests, all of them died at */
}

static void test_killed_again_and_again(void **state)
{
    (void)state;
    mica_held *held = open_queue();
    for (int i = 0; i < 3; i++)
        put(held, (char[]){(char)('a' + i), 0}, "{}");
    mica_held_close(held);
    for (int step = 0; step < 5; step++)
        assert_true(WIFSIGNALED(drain_in_child(step)));
    held = open_queue();
    assert_true(look(held).maybe_sent[0]); /* some death came after it had left */
    mica_held_close(held);
    assert_int_equal(drain_in_child(-1), 0);
    check_all_done(5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_put_once_for_a_key, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_limits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_file_that_is_no_queue, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_verdicts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_one_at_a_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_killed_at_every_step, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_killed_again_and_again, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
