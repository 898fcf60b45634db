/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/**
 * headway_program_begin:
 * @name: a literal: what it calls itself in messages
 *
 * What both programs do before anything else: the language, and standard input, output and error where they were
 * started without. The first socket would stand there otherwise, and get what is meant for people. Reading and writing
 * there fail with EBADF, as with a file that is closed; what is said on standard error is dropped.
 */
void headway_program_begin (const char *name);

G_END_DECLS
