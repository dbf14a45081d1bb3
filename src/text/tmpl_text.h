/* tmpl_text.h - values as text: str(), repr(), JSON, HTML escapes, % and str.format(). */
#ifndef MICA_TEXT_TMPL_TEXT_H
#define MICA_TEXT_TMPL_TEXT_H
#include "text/tmpl_value.h"

/** Appends str(v) or repr(v). */
bool mica_text_write(mica_run *run, mica_buf *buf, const mica_val *v);
bool mica_text_repr(mica_run *run, mica_buf *buf, const mica_val *v);
/** str(v), without the Markup flag. */
bool mica_text_str(mica_run *run, const mica_val *v, mica_val *out);
/** soft_str(v): a string stays what it is, Markup included. */
bool mica_text_soft(mica_run *run, const mica_val *v, mica_val *out);
/** markupsafe.escape(v): Markup. */
bool mica_text_escape(mica_run *run, const mica_val *v, mica_val *out);
/** Whether all went well: fails when the system refused memory, or the text is longer than a string may be. */
bool mica_text_ok(mica_run *run, const mica_buf *buf);

typedef struct mica_json_style {
    bool ensure_ascii, sort_keys, pretty;
    mica_val indent; /* pretty: one level, a string */
    mica_val item_separator, key_separator;
} mica_json_style;
/** json.dumps(). */
bool mica_text_json(mica_run *run, const mica_val *v, const mica_json_style *style, mica_val *out);

/** format % args. */
bool mica_text_percent(mica_run *run, const mica_val *format, const mica_val *args, mica_val *out);
/** format.format(*args, **kwargs): kwargs is a dict. Attributes and elements go through the sandbox. */
bool mica_text_format(mica_run *run, const mica_val *format, const mica_val *args, size_t n_args, const mica_dict *kwargs,
                      mica_val *out);
/** time.strftime at second `unix` in UTC with English names. */
bool mica_text_strftime(mica_run *run, const mica_val *format, int64_t unix, mica_val *out);

#endif
