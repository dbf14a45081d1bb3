/* Nothing is allocated, grown or mapped between the first and the last token of a reply, nor in a batch's step. The allocator's
 * entry points are replaced by counting ones; the program break and the list of mappings are compared as well. */
#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "model_util.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OWN_ALLOCATOR 0 /* the sanitizer owns malloc */
#else
#define OWN_ALLOCATOR 1
#endif

static atomic_int armed, calls;

#if OWN_ALLOCATOR
static void count(void)
{
    if (atomic_load(&armed))
        atomic_fetch_add(&calls, 1);
}

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);
void *malloc(size_t n) { count(); return __libc_malloc(n); }
void *calloc(size_t n, size_t size) { count(); return __libc_calloc(n, size); }
void *realloc(void *p, size_t n) { count(); return __libc_realloc(p, n); }
void *aligned_alloc(size_t align, size_t n) { count(); return __libc_memalign(align, n); }
void *memalign(size_t align, size_t n);
void *memalign(size_t align, size_t n) { count(); return __libc_memalign(align, n); }
int posix_memalign(void **p, size_t align, size_t n)
{
    count();
    *p = __libc_memalign(align, n);
    return *p ? 0 : ENOMEM;
}
void *mmap(void *address, size_t n, int protection, int flags, int fd, off_t offset)
{
    count();
    return (void *)syscall(SYS_mmap, address, n, protection, flags, fd, offset); /* NOLINT: what libc does */
}
int brk(void *end) { count(); return (int)syscall(SYS_brk, end) < 0; }
#endif

/* A hash of /proc/self/maps, read without allocation. */
static uint64_t mappings(void)
{
    char buffer[4096];
    uint64_t h = 1;
    int fd = (int)syscall(SYS_openat, -100, "/proc/self/maps", 0);
    for (long n; (n = read(fd, buffer, sizeof buffer)) > 0;)
        h = hash_bytes(h, buffer, (size_t)n);
    close(fd);
    return h;
}

typedef struct watch {
    int last;
    uint64_t first_maps, last_maps;
    void *first_break, *last_break;
} watch;

static int on_token(void *user, const mica_token_event *e)
{
    watch *w = user;
    if (e->index == 0) {
        w->first_break = sbrk(0);
        w->first_maps = mappings();
        atomic_store(&armed, 1);
    } else if (e->index == w->last) {
        atomic_store(&armed, 0);
        w->last_maps = mappings();
        w->last_break = sbrk(0);
    }
    return 0;
}

static mica_generate_options everything_on(void)
{
    static const char *const stops[] = {"never to be seen", "nor this"};
    mica_generate_options o = mica_generate_options_default();
    o.ignore_eos = true;
    o.stop = stops;
    o.n_stop = 2;
    o.top_logprobs = 5;
    o.sampling.repeat_penalty = 1.1f;
    o.sampling.frequency_penalty = 0.1f;
    o.sampling.dry_multiplier = 0.5f;
    o.sampling.typical_p = 0.9f;
    o.sampling.seed = 1;
    return o;
}

static void check_session(mica_session *s, mica_speculation speculate, int32_t draft_n)
{
    mica_generate_options o = everything_on();
    watch w = {.last = 99};
    mica_result r;
    mica_error err;
    o.max_tokens = w.last + 1;
    o.on_token = on_token;
    o.user = &w;
    o.speculate = speculate;
    o.draft_n = draft_n;
    assert_int_equal(mica_session_prompt(s, "abcdefgh", 8, 0, &err), MICA_OK);
    if (mica_session_generate(s, &o, &r, &err))
        fail_msg("%s", err.message);
    assert_int_equal(r.gen_n, 100);
    assert_int_equal(atomic_load(&calls), 0);
    if (OWN_ALLOCATOR) {
        assert_true(w.first_maps == w.last_maps);
        assert_ptr_equal(w.first_break, w.last_break);
    }
    assert_int_equal(r.drafted_n > 0, draft_n > 0);
}

static void check(const char *path, int threads)
{
    mica_model *model = open_model(path, NULL);
    mica_session *s = open_session(model, 200, threads, 32);
    check_session(s, MICA_SPECULATE_OFF, 0);
    mica_session_free(s);
    mica_model_close(model);
}

static void test_token_loop(void **state)
{
    (void)state;
    check(MICA_TEST_DATA "/tiny/llama.gguf", 1);
    check(MICA_TEST_DATA "/tiny/llama.gguf", 2);
    check(MICA_TEST_DATA "/tiny/gemma3.gguf", 2);
    check(MICA_TEST_DATA "/tiny/phi4-mini.gguf", 2);
}

static void test_speculation(void **state)
{
    (void)state;
    mica_model *model = open_model(MICA_TEST_DATA "/tiny/llama.gguf", NULL);
    mica_session_options o = mica_session_options_default();
    mica_session *s;
    mica_error err;
    o.n_ctx = 200;
    o.n_threads = 2;
    o.draft_max = 8;
    o.draft_model = model;
    assert_int_equal(mica_session_new(model, &o, &s, &err), MICA_OK);
    check_session(s, MICA_SPECULATE_LOOKUP, 4);
    check_session(s, MICA_SPECULATE_BOTH, 8);
    mica_session_free(s);
    mica_model_close(model);
}

static void note_done(void *user, mica_status status, const mica_result *result, const mica_error *error)
{
    (void)status, (void)result, (void)error;
    ++*(int *)user;
}

/* Whole lives of requests: prompts in pieces, tokens, stops, ends, a shifting context, one that is cancelled. */
static void test_batch_steps(void **state)
{
    (void)state;
    enum { N = 5, CTX = 64 };
    mica_model *model = open_model(MICA_TEST_DATA "/tiny/gemma3.gguf", NULL);
    mica_batch_options o = mica_batch_options_default();
    mica_session_options so = mica_session_options_default();
    mica_generate_options g = everything_on();
    mica_batch *b;
    mica_session *s[N];
    mica_error err;
    int32_t prompt[50];
    int done = 0, left;
    o.max_sessions = N;
    o.n_ctx = CTX;
    o.n_threads = 2;
    o.step_tokens = 16;
    so.full_policy = MICA_FULL_SHIFT;
    g.on_done = note_done;
    g.user = &done;
    assert_int_equal(mica_batch_new(model, &o, &b, &err), MICA_OK);
    for (int i = 0; i < 50; i++)
        prompt[i] = 3 + i;
    for (int i = 0; i < N; i++) {
        assert_int_equal(mica_batch_session_new(b, &so, &s[i], &err), MICA_OK);
        g.max_tokens = 20 + 40 * i;
        assert_int_equal(mica_batch_submit(s[i], prompt + i, (size_t)(50 - 8 * i), &g, &err), MICA_OK);
    }
    do {
        uint64_t maps = mappings();
        void *end = sbrk(0);
        atomic_store(&armed, 1);
        left = mica_batch_step(b);
        atomic_store(&armed, 0);
        assert_int_equal(atomic_load(&calls), 0);
        if (OWN_ALLOCATOR) {
            assert_ptr_equal(end, sbrk(0));
            assert_true(maps == mappings());
        }
        if (left == 3)
            mica_session_cancel(s[3]);
    } while (left > 0);
    assert_int_equal(done, N);
    mica_batch_free(b);
    mica_model_close(model);
}

static void test_the_test(void **state)
{
    (void)state;
    if (!OWN_ALLOCATOR)
        return;
    atomic_store(&armed, 1);
    void *volatile p = malloc(10);
    atomic_store(&armed, 0);
    free(p);
    assert_int_equal(atomic_exchange(&calls, 0), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_test), cmocka_unit_test(test_token_loop),
                                       cmocka_unit_test(test_speculation), cmocka_unit_test(test_batch_steps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
