/* FDL, the felt device link, version 1: the device's side, in C99, without allocation.
 *
 * The wire is described in docs/reference/protocols/fdl.md. This is one complete device's side: copy fdl.c and fdl.h
 * into a firmware, give it the bytes of the line, a clock in milliseconds and memory that survives a loss of power.
 *
 *     static struct fdl_memory memory;                        // in FRAM, or written to flash by `fdl_record`'s caller
 *     static struct fdl device;
 *
 *     fdl_start(&device, &memory, &unit, send, order, NULL, draw_a_random_number(), milliseconds());
 *     for (;;) {
 *         fdl_hear(&device, bytes, length, milliseconds());   // whenever bytes came
 *         fdl_poll(&device, milliseconds());                  // at least each 10 ms
 *         if (bell_was_pressed()) fdl_record(&device, 0x21, NULL, 0, milliseconds());
 *     }
 */
#ifndef FDL_H
#define FDL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FDL_VERSION = 1,
    FDL_RING = 256,       /* events that are kept, acknowledged or not */
    FDL_EVENT_DATA = 64,  /* bytes of data of one event; the wire allows 191 */
    FDL_ANSWER_DATA = 16, /* bytes of data of one answer; the wire allows 194 */
    FDL_ANSWERS = 8,      /* answers that are kept for a command that comes again */
    FDL_FAULTS = 16,      /* faults that stand at one time */
    FDL_MAX_PAYLOAD = 200,
    FDL_MAX_STUFFED = 206
};

/* Kinds of devices. */
enum { FDL_SHAKER = 1, FDL_CONSOLE = 2 };
/* Events that every device has. */
enum { FDL_FAULT_BEGAN = 0x01, FDL_FAULT_OVER = 0x02, FDL_STARTED = 0x03 };
/* The status of an answer. */
enum { FDL_TAKEN = 0, FDL_REFUSED = 1, FDL_NOT_KNOWN = 2 };
/* Reasons of a refusal. */
enum { FDL_BUSY = 1, FDL_FAULT_STANDS = 2, FDL_LOCAL = 3, FDL_RANGE = 4, FDL_COVER_OPEN = 5 };
/* The severity of a fault. */
enum { FDL_WARNING = 1, FDL_ERROR = 2 };

/* The unit. Vendor, model and serial together never change and belong to one unit alone: 40 bytes each at most. */
struct fdl_unit {
    uint8_t kind;
    const char *vendor, *model, *serial, *firmware;
};

struct fdl_event {
    uint32_t counter;
    uint8_t kind, length;
    uint8_t data[FDL_EVENT_DATA];
};

/* What survives a loss of power. One slot more than events are kept: a write that is cut off harms no event that counts. */
struct fdl_memory {
    uint32_t mark;  /* shows that the rest was written by this version */
    uint32_t epoch;
    uint32_t next;  /* counter of the event that will come next; written last */
    struct fdl_event ring[FDL_RING + 1];
};

struct fdl_answer {
    uint32_t ticket; /* 0: none */
    uint8_t status, reason, length;
    uint8_t data[FDL_ANSWER_DATA];
};

struct fdl;

/* Puts bytes on the line. */
typedef void fdl_send(void *context, const uint8_t *bytes, size_t length);

/* A command of this kind of device, at once and without waiting: fills `answer`. Leaves it as it is (FDL_NOT_KNOWN) for
 * a code that the device does not have. */
typedef void fdl_order(struct fdl *device, void *context, uint8_t code, const uint8_t *data, size_t length, uint32_t now,
                       struct fdl_answer *answer);

struct fdl {
    struct fdl_memory *memory;
    const struct fdl_unit *unit;
    fdl_send *send;
    fdl_order *order;
    void *context;

    bool open;         /* the session */
    uint32_t position; /* counter of the event to send; with all acknowledged, `next` */
    uint32_t send_at, beat_at, started_at;
    uint32_t first_known; /* counter of the first event since the start: the age of an earlier one is not known */
    uint32_t happened[FDL_RING + 1];
    uint8_t seq;

    struct { uint8_t code, severity, where; } faults[FDL_FAULTS];
    size_t standing;

    struct fdl_answer answers[FDL_ANSWERS];
    size_t next_answer;

    uint8_t heard[FDL_MAX_STUFFED];
    size_t heard_length;
    bool too_long;
};

/* After each start, when the self-test has run or begins to run. `draw` is a random number: the epoch where the memory
 * is empty or damaged. Records the event "started". */
void fdl_start(struct fdl *device, struct fdl_memory *memory, const struct fdl_unit *unit, fdl_send *send,
               fdl_order *order, void *context, uint32_t draw, uint32_t now);

/* Something happened. It is in the memory when the function returns. False, and nothing recorded, for data too long. */
bool fdl_record(struct fdl *device, uint8_t kind, const uint8_t *data, size_t length, uint32_t now);

/* A fault began, `where` 0 for no place; reported once, however often it is called. */
void fdl_fault(struct fdl *device, uint8_t code, uint8_t severity, uint8_t where, uint32_t now);

/* That fault is over, at every place. */
void fdl_fault_over(struct fdl *device, uint8_t code, uint32_t now);

bool fdl_fault_stands(const struct fdl *device, uint8_t code);

/* Bytes came from the host. */
void fdl_hear(struct fdl *device, const uint8_t *bytes, size_t length, uint32_t now);

/* Sends what is due: heartbeat, event. `now` counts milliseconds and may wrap. */
void fdl_poll(struct fdl *device, uint32_t now);

#endif
