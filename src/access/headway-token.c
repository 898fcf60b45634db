/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "access/headway-token.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define RANDOM_BYTES 32

static gboolean
set_errno (GError **error, const char *doing, const char *path)
{
  int code = errno;

  g_set_error (error, G_FILE_ERROR, (int) g_file_error_from_errno (code), "%s \"%s\": %s", doing, path, g_strerror (code));
  return FALSE;
}

char *
headway_token_generate (GError **error)
{
  guchar random[RANDOM_BYTES];
  char *token;

  if (getrandom (random, sizeof random, 0) != (gssize) sizeof random)
    {
      set_errno (error, "cannot read", "random bytes");
      return NULL;
    }
  token = g_malloc (2 * RANDOM_BYTES + 1);
  for (guint i = 0; i < RANDOM_BYTES; i++)
    g_snprintf (token + 2 * i, 3, "%02x", random[i]);
  return token;
}

gboolean
headway_token_equal (const char *token, const char *given)
{
  gsize length = strlen (token);
  gsize given_length = strlen (given);
  volatile guchar difference = length != given_length;

  /* Always as many steps as what was given has bytes: the caller knows that number already. */
  for (gsize i = 0; i < given_length; i++)
    difference |= (guchar) (given[i] ^ token[length > 0 ? i % length : 0]);
  return difference == 0;
}

gboolean
headway_token_check (const char *token, GError **error)
{
  gsize length = strlen (token);

  if (length < HEADWAY_TOKEN_LENGTH_MIN || length > HEADWAY_TOKEN_LENGTH_MAX)
    {
      g_set_error (error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                   "the token has %" G_GSIZE_FORMAT " characters, %d to %d are allowed",
                   length, HEADWAY_TOKEN_LENGTH_MIN, HEADWAY_TOKEN_LENGTH_MAX);
      return FALSE;
    }
  for (gsize i = 0; i < length; i++)
    {
      if (!g_ascii_isgraph (token[i]))
        {
          g_set_error (error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                       "character %" G_GSIZE_FORMAT " of the token is not printable ASCII", i + 1);
          return FALSE;
        }
    }
  return TRUE;
}

gboolean
headway_token_save (const char *path, const char *token, GError **error)
{
  g_autofree char *line = g_strconcat (token, "\n", NULL);

  return g_file_set_contents_full (path, line, -1, G_FILE_SET_CONTENTS_CONSISTENT, 0600, error);
}

char *
headway_token_load (const char *path, GError **error)
{
  g_autofree char *text = NULL;
  gsize length;

  if (!g_file_get_contents (path, &text, &length, error))
    return NULL;

  g_strstrip (text);
  if (strlen (text) == 0 || !headway_token_check (text, error))
    {
      if (error != NULL && *error == NULL)
        g_set_error (error, G_FILE_ERROR, G_FILE_ERROR_INVAL, "the token is empty");
      g_prefix_error (error, "\"%s\": ", path);
      return NULL;
    }
  return g_steal_pointer (&text);
}
