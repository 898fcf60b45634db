/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* What is accepted as a token: 16 … 512 printable ASCII characters without blanks. */
#define HEADWAY_TOKEN_LENGTH_MIN 16
#define HEADWAY_TOKEN_LENGTH_MAX 512

/* A new token of 256 random bits, in hexadecimal digits. Returns: (transfer full) (nullable): NULL
 * with G_FILE_ERROR if the kernel gives no random bytes. */
char *headway_token_generate (GError **error);

/* Whether @given is @token, in a time that tells nothing about where they differ. */
gboolean headway_token_equal (const char *token, const char *given);

/* Whether @token may be used as one; G_FILE_ERROR_INVAL otherwise, which never quotes it. */
gboolean headway_token_check (const char *token, GError **error);

/* Writes @token and LF to @path, mode 0600, replacing the file in one step. At start only: it
 * writes to a disk. */
gboolean headway_token_save (const char *path, const char *token, GError **error);

/* Reads a token back, without white space around it. At start only. Returns: (transfer full)
 * (nullable). */
char *headway_token_load (const char *path, GError **error);

G_END_DECLS
