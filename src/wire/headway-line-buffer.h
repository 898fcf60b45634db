/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Bytes that a line or a body with one event may have beyond the event itself (decisions.md 13). */
#define HEADWAY_LINE_SLACK (64 * 1024)

/* What headway_line_buffer_next() found. */
typedef enum
{
  HEADWAY_LINE_NONE,     /* no whole line yet, or nothing more */
  HEADWAY_LINE_BLANK,    /* nothing but white space */
  HEADWAY_LINE_TEXT,     /* one with something on it */
  HEADWAY_LINE_TOO_LONG, /* over the limit: what is buffered of it is dropped, the rest will be */
} HeadwayLineKind;

/**
 * HeadwayLineBuffer:
 * @line: number of the last line that was taken, from 1; blank ones count
 *
 * Cuts what arrives in pieces into lines (NDJSON, decisions.md 13). A line is what stands before an LF;
 * a CR in front of that is left to the reader, for JSON it is white space, and does not count towards the limit. Lines are found where they
 * arrived: nothing is copied but the beginning of one that is still incomplete.
 *
 * To be zeroed first.
 */
typedef struct
{
  char *bytes; /* owned, nullable */
  gsize size;  /* of the allocation */
  gsize start; /* where the next line begins */
  gsize searched;
  gsize end; /* of what has arrived */
  gsize last_start;
  guint64 line;
  gboolean is_complete;
  gboolean is_skipping; /* up to the next LF: the rest of a line that is too long */
} HeadwayLineBuffer;

void headway_line_buffer_clear (HeadwayLineBuffer *self);

/**
 * headway_line_buffer_reserve:
 * @room: at least so many bytes, at least 1
 * @length: (out): how many there are
 *
 * Returns: (transfer none): where to put what arrives; say with headway_line_buffer_commit() how much it
 *   was. Texts of earlier lines are gone with this.
 */
char *headway_line_buffer_reserve (HeadwayLineBuffer *self, gsize room, gsize *length);
void headway_line_buffer_commit (HeadwayLineBuffer *self, gsize length);
/* Both at once. */
void headway_line_buffer_append (HeadwayLineBuffer *self, const char *bytes, gsize length);
/* Nothing more arrives: what is left is a line, without its LF. */
void headway_line_buffer_end (HeadwayLineBuffer *self);

/**
 * headway_line_buffer_next:
 * @max: bytes a line may have, without its LF
 * @text: (out): the line without its LF, not ended by NUL; of HEADWAY_LINE_TEXT only
 * @length: (out): its bytes
 *
 * Takes the next line. One that is too long is reported as soon as that is known, and takes no memory
 * from then on.
 */
HeadwayLineKind headway_line_buffer_next (HeadwayLineBuffer *self, gsize max, const char **text, gsize *length);
/* As if the last HEADWAY_LINE_TEXT had not been taken. */
void headway_line_buffer_give_back (HeadwayLineBuffer *self);

/* Sets the error of a HEADWAY_LINE_TOO_LONG: TOO_LARGE with @max. */
void headway_line_buffer_set_too_long (GError **error, gsize max);

/* Bytes that have arrived and are in no line taken. */
gsize headway_line_buffer_get_waiting (const HeadwayLineBuffer *self);
/* Gives back the memory if nothing waits. */
void headway_line_buffer_trim (HeadwayLineBuffer *self);

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (HeadwayLineBuffer, headway_line_buffer_clear)

G_END_DECLS
