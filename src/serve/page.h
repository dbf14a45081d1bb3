/* page.h - the page for people: what it is made of, and what it asks once a second. Rows of the table in routes.c. */
#ifndef MICA_SERVE_PAGE_H
#define MICA_SERVE_PAGE_H
#include "serve/http.h"

/* "/", "/page.js", "/page.css", "/licenses.txt": embedded; 304 for who has them. On the HTTP thread. */
void mica_page_html(mica_server *s, mica_job *job);
void mica_page_js(mica_server *s, mica_job *job);
void mica_page_css(mica_server *s, mica_job *job);
void mica_page_licenses(mica_server *s, mica_job *job);

/** "/v1/mica/status": the model, the memory plan, and the counters of /metrics, as JSON. */
void mica_page_status(mica_server *s, mica_job *job);

#endif
