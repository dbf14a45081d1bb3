/* Loads that died: kill -9 leaves a note, two notes are a refusal, a load that goes well takes them away. */
#include <dirent.h>
#include <ftw.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "mica/mica_memory.h"

typedef struct place {
    char root[64], folder[128], model[128];
} place;

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *ftw)
{
    (void)info, (void)type, (void)ftw;
    return remove(path);
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static int make_place(void **state)
{
    place *p = calloc(1, sizeof *p);
    if (!p)
        return -1;
    snprintf(p->root, sizeof p->root, "%s/mica-loads-XXXXXX", P_tmpdir);
    if (!mkdtemp(p->root))
        return -1;
    snprintf(p->folder, sizeof p->folder, "%s/state/mica/loads", p->root);
    snprintf(p->model, sizeof p->model, "%s/model.gguf", p->root);
    write_file(p->model, "weights");
    *state = p;
    return 0;
}

static int free_place(void **state)
{
    place *p = *state;
    int failed = nftw(p->root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    free(p);
    return failed;
}

static int n_notes(const place *p)
{
    int n = 0;
    DIR *folder = opendir(p->folder);
    for (struct dirent *e; folder && (e = readdir(folder));)
        n += e->d_name[0] != '.';
    if (folder)
        closedir(folder);
    return n;
}

/* A process that begins a load and is killed in it. */
static void die_loading(const place *p, int32_t n_ctx, bool force)
{
    int ready[2], status;
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        mica_load *load;
        bool good = mica_load_begin(p->folder, p->model, n_ctx, force, &load, NULL) == MICA_OK;
        if (write(ready[1], good ? "y" : "n", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    assert_true(pid > 0);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    close(ready[0]);
    close(ready[1]);
}

static mica_status try_load(const place *p, int32_t n_ctx, bool force, bool good, mica_error *err)
{
    mica_load *load;
    mica_status status = mica_load_begin(p->folder, p->model, n_ctx, force, &load, err);
    if (status)
        assert_null(load);
    else
        assert_int_equal(access(mica_load_note(load), F_OK), 0);
    mica_load_end(load, good);
    return status;
}

static void two_deaths_are_enough(void **state)
{
    const place *p = *state;
    mica_error err;
    die_loading(p, 4096, false);
    assert_int_equal(try_load(p, 4096, false, false, &err), MICA_OK); /* one may be chance; an error is no death */
    assert_int_equal(n_notes(p), 1);
    die_loading(p, 4096, false);
    assert_int_equal(try_load(p, 4096, false, true, &err), MICA_OVER_BUDGET);
    assert_non_null(strstr(err.message, "--force-load"));
    assert_non_null(strstr(err.message, "model.gguf"));
    assert_int_equal(n_notes(p), 2);                                 /* a refusal leaves none of its own */
    assert_int_equal(try_load(p, 2048, false, true, &err), MICA_OK); /* with a smaller context it is another load */
    assert_int_equal(try_load(p, 4096, false, true, &err), MICA_OVER_BUDGET);
    die_loading(p, 4096, true);
    assert_int_equal(try_load(p, 4096, true, true, &err), MICA_OK); /* forced, and good */
    assert_int_equal(n_notes(p), 0);
    assert_int_equal(try_load(p, 4096, false, true, &err), MICA_OK);
}

static void another_file_is_another_load(void **state)
{
    const place *p = *state;
    mica_error err;
    die_loading(p, 0, false);
    die_loading(p, 0, false);
    assert_int_equal(try_load(p, 0, false, true, &err), MICA_OVER_BUDGET);
    write_file(p->model, "fewer bits"); /* the same name */
    assert_int_equal(try_load(p, 0, false, true, &err), MICA_OK);
    assert_int_equal(remove(p->model), 0);
    assert_int_equal(try_load(p, 0, false, true, &err), MICA_IO_ERROR);
}

/* Loads under way, of this process and of others, are no deaths. */
static void the_living_do_not_count(void **state)
{
    const place *p = *state;
    mica_load *first, *third;
    mica_error err;
    assert_int_equal(mica_load_begin(p->folder, p->model, 0, false, &first, &err), MICA_OK);
    pid_t pid = fork();
    if (pid == 0) {
        mica_load *load;
        mica_status status = mica_load_begin(p->folder, p->model, 0, false, &load, NULL);
        mica_load_end(load, true);
        _exit(status == MICA_OK && access(mica_load_note(first), F_OK) == 0 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    mica_load_end(first, true);
    assert_int_equal(mica_load_begin(p->folder, p->model, 0, false, &third, &err), MICA_OK);
    mica_load_end(third, true);
    mica_load_end(NULL, true);
    assert_int_equal(n_notes(p), 0);
}

/* What else lies in the folder is nobody's note. A note of a process number that lives again, but began at another time, is a
 * death. */
static void notes_are_read_strictly(void **state)
{
    const place *p = *state;
    mica_error err;
    mica_load *load;
    char path[512], hash[17] = "";
    assert_int_equal(mica_load_begin(p->folder, p->model, 0, false, &load, &err), MICA_OK);
    memcpy(hash, strrchr(mica_load_note(load), '/') + 1, 16);
    mica_load_end(load, false);
    static const char *const strange[] = {"", "-", "-x-1", "-0-1", "--5-1", "-99999999999-1", "-4194304", "x-4194304-1"};
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
        snprintf(path, sizeof path, "%s/%s%s", p->folder, hash, strange[i]);
        write_file(path, "");
    }
    assert_int_equal(try_load(p, 0, false, false, &err), MICA_OK);
    for (int i = 1; i <= 2; i++) {
        snprintf(path, sizeof path, "%s/%s-%d-%d", p->folder, hash, (int)getpid(), i);
        write_file(path, "");
    }
    assert_int_equal(try_load(p, 0, false, false, &err), MICA_OVER_BUDGET);
}

static void folders_that_cannot_be(void **state)
{
    const place *p = *state;
    mica_error err;
    mica_load *load;
    char path[512], *longer = malloc(5000);
    snprintf(path, sizeof path, "%s/loads", p->model); /* in a file */
    assert_int_equal(mica_load_begin(path, p->model, 0, false, &load, &err), MICA_IO_ERROR);
    assert_non_null(strstr(err.message, "folder"));
    assert_int_equal(mica_load_begin("", p->model, 0, false, &load, &err), MICA_INVALID_ARGUMENT);
    memset(longer, 'x', 4999);
    longer[4999] = '\0';
    assert_int_equal(mica_load_begin(longer, p->model, 0, false, &load, &err), MICA_INVALID_ARGUMENT);
    free(longer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(two_deaths_are_enough, make_place, free_place),
        cmocka_unit_test_setup_teardown(another_file_is_another_load, make_place, free_place),
        cmocka_unit_test_setup_teardown(the_living_do_not_count, make_place, free_place),
        cmocka_unit_test_setup_teardown(notes_are_read_strictly, make_place, free_place),
        cmocka_unit_test_setup_teardown(folders_that_cannot_be, make_place, free_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
