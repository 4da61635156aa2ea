/* A dealer's console with the keys of a dice table. Its wire: docs/reference/protocols/fdl_console.md.
 *
 * Hands: open · bell · paid · void N · key 0 · key 1 · dice F F F (twice alike within 30 s) · relieved · closes
 */
#include "device.h"

#include <stdio.h>
#include <string.h>

enum { OPENED = 0x20, CLOSED = 0x21, VOID = 0x22, PAID = 0x23, RELIEVED = 0x2B, KEY = 0x2C, DICE_ENTERED = 0x30 };
enum { TABLE_CLOSED = 0x3D, ENTRY_FAULT = 0x25, SUPERVISORS_DECISION = 5, DICE = 3, ENTRY_MS = 30000, FAULT_MS = 20000 };

static const struct fdl_unit UNIT = {FDL_CONSOLE, "Example", "C Console", "C-CONSOLE-1", "1.0"};
static struct fdl fdl;
static uint8_t supervisor, entry[DICE];
static int entries; /* made in a row, each unlike the one before it */
static uint32_t entered_at, fault_at;

void device_start(struct fdl_memory *memory, fdl_send *send, void *context, uint32_t draw, uint32_t now)
{
    supervisor = 0; /* after a start the key counts as off, and a half-made entry is discarded */
    entries = 0;
    fdl_start(&fdl, memory, &UNIT, send, NULL, context, draw, now);
}

void device_hear(const uint8_t *bytes, size_t length, uint32_t now)
{
    fdl_hear(&fdl, bytes, length, now);
}

void device_poll(uint32_t now)
{
    if (fdl_fault_stands(&fdl, ENTRY_FAULT) && now - fault_at >= FAULT_MS)
        fdl_fault_over(&fdl, ENTRY_FAULT, now);
    fdl_poll(&fdl, now);
}

/* A result is asked for twice, and reported when the second entry equals the first. */
static bool enter_dice(const char *line, uint32_t now)
{
    unsigned face[DICE];
    uint8_t data[3 + DICE] = {0, 0, DICE};
    if (sscanf(line, "dice %u %u %u", &face[0], &face[1], &face[2]) != DICE)
        return false;
    for (int at = 0; at < DICE; at++) {
        if (face[at] < 1 || face[at] > 6)
            return false;
        data[3 + at] = (uint8_t)face[at];
    }
    if (entries && now - entered_at > ENTRY_MS)
        entries = 0;
    if (entries && memcmp(entry, data + 3, DICE) == 0) {
        entries = 0;
        fdl_fault_over(&fdl, ENTRY_FAULT, now);
        return fdl_record(&fdl, DICE_ENTERED, data, sizeof data, now);
    }
    memcpy(entry, data + 3, DICE);
    entered_at = now;
    if (++entries == 3) {
        entries = 0;
        fault_at = now;
        fdl_fault(&fdl, ENTRY_FAULT, FDL_WARNING, 0, now);
    }
    return true;
}

bool device_hand(const char *line, uint32_t now)
{
    unsigned value;
    uint8_t byte;
    if (strcmp(line, "open") == 0)
        return fdl_record(&fdl, OPENED, NULL, 0, now);
    if (strcmp(line, "bell") == 0)
        return fdl_record(&fdl, CLOSED, NULL, 0, now);
    if (strcmp(line, "paid") == 0)
        return fdl_record(&fdl, PAID, NULL, 0, now);
    if (strcmp(line, "relieved") == 0)
        return fdl_record(&fdl, RELIEVED, NULL, 0, now);
    if (strcmp(line, "closes") == 0)
        return fdl_record(&fdl, TABLE_CLOSED, NULL, 0, now);
    if (sscanf(line, "key %u", &value) == 1 && value <= 1) {
        supervisor = (uint8_t)value;
        return fdl_record(&fdl, KEY, &supervisor, 1, now);
    }
    if (sscanf(line, "void %u", &value) == 1 && value <= SUPERVISORS_DECISION) {
        byte = (uint8_t)value;
        return (byte != SUPERVISORS_DECISION || supervisor) && fdl_record(&fdl, VOID, &byte, 1, now);
    }
    return enter_dice(line, now);
}
