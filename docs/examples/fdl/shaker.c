/* A dice shaker: dome with clasps, lever, motor, reader, lamp. Its wire: docs/reference/protocols/fdl_shaker.md.
 *
 * Hands: cover · uncover · lever · lever N · read F F F · read F F F stacked N leaning N · clasp · clasp-over
 */
#include "device.h"

#include <stdio.h>
#include <string.h>

enum { COVERED = 0x10, UNCOVERED = 0x11, AGITATED = 0x12, READ = 0x13, LIT = 0x14 };
enum { BY_LEVER = 1, BY_MOTOR = 2, READING_LAMP = 1, AGITATE = 0x10, LIGHT = 0x11 };
enum { NOT_FINISHED = 0x12, CLASP_OPEN = 0x15 };
enum { CYCLE_MS = 2000, DICE = 3, MAX_CYCLES = 10 };

static const struct fdl_unit UNIT = {FDL_SHAKER, "Example", "C Shaker", "C-SHAKER-1", "1.0"};
static struct fdl fdl;
static bool shut, turning;
static uint8_t cycles, lamps;
static uint32_t turned_at; /* when the motor will have done its cycles */

static void agitated(uint8_t mode, uint8_t times, uint32_t now)
{
    uint8_t data[2] = {mode, times};
    fdl_record(&fdl, AGITATED, data, sizeof data, now);
    fdl_fault_over(&fdl, NOT_FINISHED, now);
}

static void order(struct fdl *device, void *context, uint8_t code, const uint8_t *data, size_t length, uint32_t now,
                  struct fdl_answer *answer)
{
    (void)context;
    if (code != AGITATE && code != LIGHT)
        return;
    answer->status = FDL_REFUSED;
    if (length != 1 || (code == LIGHT ? data[0] > READING_LAMP : data[0] < 1 || data[0] > MAX_CYCLES)) {
        answer->reason = FDL_RANGE;
    } else if (code == LIGHT) {
        answer->status = FDL_TAKEN;
        if (lamps != data[0]) {
            lamps = data[0];
            fdl_record(device, LIT, &lamps, 1, now);
        }
    } else if (turning) {
        answer->reason = FDL_BUSY;
    } else if (!shut) {
        answer->reason = FDL_COVER_OPEN;
    } else {
        answer->status = FDL_TAKEN;
        turning = true;
        cycles = data[0];
        turned_at = now + (uint32_t)cycles * CYCLE_MS;
    }
}

void device_start(struct fdl_memory *memory, fdl_send *send, void *context, uint32_t draw, uint32_t now)
{
    shut = turning = false;
    lamps = 0;
    fdl_start(&fdl, memory, &UNIT, send, order, context, draw, now);
}

void device_hear(const uint8_t *bytes, size_t length, uint32_t now)
{
    fdl_hear(&fdl, bytes, length, now);
}

void device_poll(uint32_t now)
{
    if (turning && now - turned_at < 0x80000000u) {
        turning = false;
        agitated(BY_MOTOR, cycles, turned_at);
    }
    fdl_poll(&fdl, now);
}

static bool read_dice(const char *line, uint32_t now)
{
    unsigned face[DICE], stacked = 0, leaning = 0;
    int found = sscanf(line, "read %u %u %u stacked %u leaning %u", &face[0], &face[1], &face[2], &stacked, &leaning);
    if (found != DICE && found != DICE + 2)
        return false;
    uint8_t data[3 + DICE] = {(uint8_t)stacked, (uint8_t)leaning, DICE};
    for (int at = 0; at < DICE; at++) {
        if (face[at] < 1 || face[at] > 6)
            return false;
        data[3 + at] = (uint8_t)face[at];
    }
    return fdl_record(&fdl, READ, data, sizeof data, now);
}

bool device_hand(const char *line, uint32_t now)
{
    unsigned pulls = 1;
    if (strcmp(line, "cover") == 0) {
        if (fdl_fault_stands(&fdl, CLASP_OPEN))
            return true; /* the dome lies on the dice, and does not shut: no event */
        shut = true;
        fdl_record(&fdl, COVERED, NULL, 0, now);
    } else if (strcmp(line, "uncover") == 0) {
        if (turning) { /* the motor stops where it is */
            turning = false;
            fdl_fault(&fdl, NOT_FINISHED, FDL_WARNING, 0, now);
        }
        shut = false;
        fdl_record(&fdl, UNCOVERED, NULL, 0, now);
    } else if (strcmp(line, "lever") == 0 || (sscanf(line, "lever %u", &pulls) == 1 && pulls >= 1 && pulls <= 255)) {
        agitated(BY_LEVER, (uint8_t)pulls, now);
    } else if (strcmp(line, "clasp") == 0) { /* the fault first, then what follows from it */
        fdl_fault(&fdl, CLASP_OPEN, FDL_WARNING, 0, now);
        if (shut) {
            shut = false;
            fdl_record(&fdl, UNCOVERED, NULL, 0, now);
        }
    } else if (strcmp(line, "clasp-over") == 0) {
        fdl_fault_over(&fdl, CLASP_OPEN, now);
    } else {
        return read_dice(line, now);
    }
    return true;
}
