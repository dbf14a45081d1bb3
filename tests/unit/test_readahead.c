/* A model's first step asks for its layers before they are computed with, once, and in the order of use. */
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "model_util.h"
#include "random_model.h"
#include "session/session.h"

static void test_order(void **state)
{
    (void)state;
    static const int32_t tokens[] = {5, 6, 7};
    mica_model *model = open_model(MICA_TEST_DATA "/tiny/gemma3.gguf", NULL);
    const mica_weights *w = &model->weights;
    mica_error err;
    assert_int_equal(atomic_load(w->wanted), 0); /* opening reads no weights */
    mica_session *s = open_session(model, 64, 2, 16);
    assert_int_equal(atomic_load(w->wanted), 1);
    mica_weights_want(w, 3);
    mica_weights_want(w, 1);
    assert_int_equal(atomic_load(w->wanted), 4);
    assert_int_equal(mica_session_sync(s, tokens, 3, &err), MICA_OK);
    assert_int_equal(atomic_load(w->wanted), w->h.n_layers + 1); /* and the output matrix */
    mica_weights_want(w, 1000);
    assert_int_equal(atomic_load(w->wanted), w->h.n_layers + 1);
    mica_session_free(s);
    mica_model_close(model);
}

/* Pages of a matrix that are in memory. */
static int resident(const mica_weight *m)
{
    unsigned char pages[4096];
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)m->data & ~(page - 1);
    size_t bytes = (uintptr_t)m->data + (size_t)m->rows * m->row_bytes - start;
    int n = 0, total = (int)((bytes + page - 1) / page);
    assert_true(total > 1 && total <= 4096);
    assert_int_equal(mincore((void *)start, bytes, pages), 0);
    for (int i = 0; i < total; i++)
        n += pages[i] & 1;
    return n == total ? -1 : n;
}

/* The pages come without being touched. Where a file cannot be put out of memory (tmpfs) they are there anyway. */
static void test_pages_come(void **state)
{
    (void)state;
    char path[] = "/tmp/mica-readahead-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write_random_model(path, MICA_TYPE_F32));
    assert_int_equal(fsync(fd), 0);
    assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
    mica_model *model = open_model(path, NULL);
    const mica_weights *w = &model->weights;
    int before = resident(&w->layers[1].down);
    mica_weights_want(w, 1);
    for (int i = 0; i < 500 && resident(&w->layers[1].down) != -1; i++)
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    assert_int_equal(resident(&w->layers[0].q), -1);
    assert_int_equal(resident(&w->layers[1].down), -1);
    print_message("before: %d\n", before);
    mica_model_close(model);
    close(fd);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_order), cmocka_unit_test(test_pages_come)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
