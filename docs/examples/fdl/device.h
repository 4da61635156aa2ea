/* What a device of these examples gives to the program that runs it (run.c, or a test with a clock of its own). */
#ifndef DEVICE_H
#define DEVICE_H

#include "fdl.h"

/* The power is switched on. */
void device_start(struct fdl_memory *memory, fdl_send *send, void *context, uint32_t draw, uint32_t now);

/* Bytes came from the host. */
void device_hear(const uint8_t *bytes, size_t length, uint32_t now);

/* At least each 10 ms. */
void device_poll(uint32_t now);

/* What hands do at the device, as a line of text: "cover", "bell". False for an unknown line. */
bool device_hand(const char *line, uint32_t now);

#endif
