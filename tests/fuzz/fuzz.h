/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* What libFuzzer calls. Aborts where something is wrong; always returns 0. */
int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

/* What fuzz-main.c starts from; ended by NULL. */
extern const char *const fuzz_seeds[];
