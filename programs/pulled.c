#ifdef MICA_HAVE_PULL
#include "pulled.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/map.h"
#include "interrupt.h"
#include "load.h"
#include "pull/cache.h"

#define TELL_NS (10 * INT64_C(1000000000)) /* a line in a log */

int mica_pulled_folder(char path[4096])
{
    int code = mica_load_fetched("", path);
    size_t n = code == CODE_OK ? strlen(path) : 0;
    if (n > 1 && path[n - 1] == '/')
        path[n - 1] = '\0';
    return code;
}

/* ---- Progress ---- */

static void describe(mica_pulled_progress *p, int64_t done, int64_t total, int64_t now)
{
    double seconds = (double)(now - p->start_ns) / 1e9, rate = seconds > 0 ? (double)(done - p->first) / seconds : 0;
    int n = total >= 0 ? snprintf(p->text, sizeof p->text, "%s: %.1f of %.1f MB, %.1f MB/s", p->what, (double)done / 1e6,
                                  (double)total / 1e6, rate / 1e6)
                       : snprintf(p->text, sizeof p->text, "%s: %.1f MB, %.1f MB/s", p->what, (double)done / 1e6, rate / 1e6);
    if (total >= 0 && rate > 0 && n > 0 && n < (int)sizeof p->text)
        snprintf(p->text + n, sizeof p->text - (size_t)n, ", %.0f s left    ",
                 (double)(total - done) / rate); /* over what was longer */
}

static int show(void *user, const char *what, int64_t done, int64_t total)
{
    mica_pulled_progress *p = user;
    int64_t now = mica_now_ns();
    if (!p->what || strcmp(p->what, what) != 0 || done < p->first) {
        p->what = what;
        p->start_ns = p->told_ns = now;
        p->first = done;
    }
    describe(p, done, total, now);
    if (isatty(STDERR_FILENO)) {
        p->bar.what = p->text;
        mica_bar_show(&p->bar, total > 0 ? (double)done / (double)total : 0);
    } else if (now - p->told_ns >= TELL_NS) {
        p->told_ns = now;
        mica_term_note("%s: %s", p->name, p->text);
    }
    return mica_interrupt_count() > 0;
}

static void tell(void *user, const char *text)
{
    mica_pulled_progress *p = user;
    mica_bar_end(&p->bar);
    mica_term_note("%s: %s", p->name, text);
}

mica_pull_options mica_pulled_options(mica_pulled_progress *progress, const char *name)
{
    mica_pull_options options = mica_pull_options_default();
    *progress = (mica_pulled_progress){.name = name};
    options.on_progress = show;
    options.on_note = tell;
    options.user = progress;
    return options;
}

/* ---- Names ---- */

int mica_pulled_resolve(char path[4096])
{
    char folder[4096], found[4096];
    mica_pulled_progress progress;
    mica_error err;
    if (!strchr(path, '/') && access(path, F_OK) != 0 && mica_pulled_folder(folder) == CODE_OK &&
        mica_cache_find(folder, path, found))
        memcpy(path, found, strlen(found) + 1);
    mica_pull_options options = mica_pulled_options(&progress, mica_path_tail(path));
    mica_status status = mica_cache_check(path, &options, &err);
    mica_bar_end(&progress.bar);
    return status == MICA_BAD_FILE || status == MICA_CANCELLED ? mica_load_failed(&err) : CODE_OK; /* opening tells the rest */
}

#else
typedef int mica_pulled_none; /* C wants a declaration */
#endif
