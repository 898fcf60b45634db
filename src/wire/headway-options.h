/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-limits.h"

#include <gio/gio.h>

G_BEGIN_DECLS

/* What an option holds on the wire, and where its value goes. */
typedef enum
{
  HEADWAY_OPTION_BOOLEAN, /* `b` → gboolean */
  HEADWAY_OPTION_UINT32,  /* `u` → guint */
  HEADWAY_OPTION_UINT64,  /* `t` → guint64 */
  HEADWAY_OPTION_STRING,  /* `s` → const char *, borrowed from the dictionary */
  HEADWAY_OPTION_STRV,    /* `as` → const char **, ended by NULL; the array is owned, its strings borrowed */
} HeadwayOptionType;

/**
 * HeadwayOptionSpec:
 * @key: the key in the dictionary
 * @offset: of the value in the structure that headway_options_parse() fills
 * @minimum, @maximum: of a number; bytes of a string; entries of a list
 * @characters: (nullable): the ASCII characters a string may have, such as "A-Z a-z 0-9 _"
 * @words: (nullable): the words a string may be, ended by NULL
 *
 * One known option. A table of them is ended by an entry whose key is NULL, and has at most 64.
 */
typedef struct
{
  const char *key;
  HeadwayOptionType type;
  gsize offset;
  guint64 minimum;
  guint64 maximum;
  const char *characters;
  const char *const *words;
} HeadwayOptionSpec;

/**
 * headway_options_parse:
 * @options: an `a{sv}`
 * @specs: all the keys it may have
 * @values: structure that is filled; what @options does not name stays as it is
 * @given: (out) (optional): bit i is set where @options has the key of @specs[i]
 *
 * Reads the options of a call. Nothing is copied but the arrays of HEADWAY_OPTION_STRV, which the
 * caller frees also after a failure.
 *
 * Returns: FALSE with HEADWAY_ERROR_INVALID_OPTION, which names the key, the value and the limit.
 */
gboolean headway_options_parse (GVariant *options,
                                const HeadwayOptionSpec *specs,
                                gpointer values,
                                guint64 *given,
                                GError **error);

/* The options of CreateBus, as headway_bus_option_specs() lists them, over what @values holds. */
gboolean headway_options_parse_bus (GVariant *options, HeadwayBusOptions *values, GError **error);

G_END_DECLS
