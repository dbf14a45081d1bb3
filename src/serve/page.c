/* page.c - the files of the page. They are built by page/build and live in the program: the page needs nothing from anywhere else, and its
 * policy forbids that it asks. */
#include "serve/page.h"

#include <string.h>

#include "serve/page/assets.h"

/* Scripts, styles and requests: only this server's. Pictures: only those in the page itself. Text becomes HTML only through DOMPurify. */
#define POLICY                                                                                                                   \
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "      \
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types dompurify\r\n"
#define COMMON                                                                                                                   \
    POLICY "Referrer-Policy: no-referrer\r\nCross-Origin-Opener-Policy: same-origin\r\n"                                         \
           "Cross-Origin-Resource-Policy: same-origin\r\nCache-Control: no-cache\r\n"
/* Kept in this form only. Every browser takes it; who asks for the plain form gets gzip all the same. */
#define GZIP "Content-Encoding: gzip\r\n"

static void answer(mica_job *job, const char *type, const char *headers, const char *etag, const unsigned char *data, size_t length)
{
    bool has_it = strstr(job->if_none_match, etag) != NULL;
    job->headers = headers;
    mica_job_reply(job, has_it ? 304 : 200, type, (const char *)data, has_it ? 0 : length);
}

void mica_page_html(mica_server *s, mica_job *job)
{
    (void)s;
    answer(job, "text/html; charset=utf-8", COMMON "ETag: " MICA_PAGE_HTML_ETAG "\r\n", MICA_PAGE_HTML_ETAG, page_html, sizeof page_html);
}

void mica_page_js(mica_server *s, mica_job *job)
{
    (void)s;
    answer(job, "text/javascript; charset=utf-8", COMMON GZIP "ETag: " MICA_PAGE_JS_ETAG "\r\n", MICA_PAGE_JS_ETAG, page_js,
           sizeof page_js);
}

void mica_page_css(mica_server *s, mica_job *job)
{
    (void)s;
    answer(job, "text/css; charset=utf-8", COMMON GZIP "ETag: " MICA_PAGE_CSS_ETAG "\r\n", MICA_PAGE_CSS_ETAG, page_css, sizeof page_css);
}

void mica_page_licenses(mica_server *s, mica_job *job)
{
    (void)s;
    answer(job, "text/plain; charset=utf-8", COMMON GZIP "ETag: " MICA_PAGE_LICENSES_ETAG "\r\n", MICA_PAGE_LICENSES_ETAG, page_licenses,
           sizeof page_licenses);
}
