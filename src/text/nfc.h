/* nfc.h - Unicode normalisation form C, through utf8proc's tables. Called by text/bpe for the vocabularies that want it. */
#ifndef MICA_TEXT_NFC_H
#define MICA_TEXT_NFC_H
#include "base/error.h"

/** Normalises valid UTF-8. When text is already in the form that needs no work (all code points below U+0300), *out is NULL and
 * the caller goes on with its own text; else *out is malloc'ed and *out_length its length. n log n at worst. */
mica_status mica_nfc(const char *text, size_t n, char **out, size_t *out_length, mica_error *err);

#endif
