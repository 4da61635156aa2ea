/* FDL, the felt device link, version 1: the device's side. See fdl.h. */
#include "fdl.h"

#include <string.h>

enum { MARK = 0x46444C31, HEAD = 3, CRC = 2, AGE_UNKNOWN_BYTE = 0xFF, REPEAT_MS = 200, BEAT_MS = 1000, NAME = 40 };
enum { HELLO = 0x01, ACK = 0x02, NAK = 0x03, COMMAND = 0x10 };
enum { IDENTITY = 0x81, EVENT = 0x82, HEARTBEAT = 0x83, ANSWER = 0x90 };
enum { SELF_TEST = 0x01, NEEDS_HELLO = 0x01, FAULTY = 0x02 };
enum { SLOTS = FDL_RING + 1 };

static uint16_t crc16(const uint8_t *bytes, size_t length)
{
    uint16_t crc = 0xFFFF;
    for (size_t at = 0; at < length; at++) {
        crc ^= (uint16_t)(bytes[at] << 8);
        for (int bit = 0; bit < 8; bit++)
            crc = (uint16_t)(crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1);
    }
    return crc;
}

static void put32(uint8_t *to, uint32_t value)
{
    to[0] = (uint8_t)(value >> 24);
    to[1] = (uint8_t)(value >> 16);
    to[2] = (uint8_t)(value >> 8);
    to[3] = (uint8_t)value;
}

static uint32_t get32(const uint8_t *from)
{
    return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

/* Whether the time `at` has come; both count milliseconds and wrap. */
static bool due(uint32_t at, uint32_t now)
{
    return now - at < 0x80000000u;
}

/* ---- frames */

static void send_frame(struct fdl *device, uint8_t type, uint8_t seq, const uint8_t *payload, size_t length)
{
    uint8_t body[HEAD + FDL_MAX_PAYLOAD + CRC], line[FDL_MAX_STUFFED + 2];
    body[0] = (uint8_t)length;
    body[1] = type;
    body[2] = seq;
    memcpy(body + HEAD, payload, length);
    uint16_t crc = crc16(body, HEAD + length);
    body[HEAD + length] = (uint8_t)(crc >> 8);
    body[HEAD + length + 1] = (uint8_t)crc;

    size_t end = 0, piece = 1; /* where the length of the current piece is */
    line[end++] = 0;
    line[end++] = 1;
    for (size_t at = 0; at < HEAD + length + CRC; at++) {
        if (body[at]) {
            line[end++] = body[at];
            line[piece]++;
        } else {
            piece = end;
            line[end++] = 1;
        }
    }
    line[end++] = 0;
    device->send(device->context, line, end);
}

/* The body of what came between two 00, in place; its length, 0 for what is no frame. */
static size_t unstuff(uint8_t *bytes, size_t length)
{
    size_t from = 0, to = 0;
    while (from < length) {
        size_t piece = bytes[from++];
        if (piece == 0 || from + piece - 1 > length)
            return 0;
        memmove(bytes + to, bytes + from, piece - 1);
        to += piece - 1;
        from += piece - 1;
        if (from < length)
            bytes[to++] = 0;
    }
    if (to < HEAD + CRC || bytes[0] > FDL_MAX_PAYLOAD || (size_t)bytes[0] + HEAD + CRC != to)
        return 0;
    if (crc16(bytes, to - CRC) != (uint16_t)(bytes[to - 2] << 8 | bytes[to - 1]))
        return 0;
    return to;
}

/* ---- what the device sends */

static uint32_t oldest(const struct fdl *device)
{
    uint32_t next = device->memory->next;
    return next > FDL_RING ? next - FDL_RING : 1;
}

static size_t put_text(uint8_t *to, const char *text)
{
    size_t length = 0;
    while (length < NAME && text[length])
        length++;
    to[0] = (uint8_t)length;
    memcpy(to + 1, text, length);
    return 1 + length;
}

static void send_identity(struct fdl *device, uint8_t seq)
{
    uint8_t payload[FDL_MAX_PAYLOAD];
    payload[0] = FDL_VERSION;
    payload[1] = device->unit->kind;
    put32(payload + 2, device->memory->epoch);
    put32(payload + 6, oldest(device));
    put32(payload + 10, device->memory->next);
    put32(payload + 14, device->open ? device->position : 0);
    size_t end = 18;
    end += put_text(payload + end, device->unit->vendor);
    end += put_text(payload + end, device->unit->model);
    end += put_text(payload + end, device->unit->serial);
    end += put_text(payload + end, device->unit->firmware);
    send_frame(device, IDENTITY, seq, payload, end);
}

static void send_event(struct fdl *device, uint32_t now)
{
    device->send_at = now + REPEAT_MS;
    if (device->position < oldest(device)) {
        send_identity(device, ++device->seq);
        return;
    }
    const struct fdl_event *event = &device->memory->ring[device->position % SLOTS];
    uint8_t payload[9 + FDL_EVENT_DATA];
    put32(payload, event->counter);
    if (event->counter >= device->first_known)
        put32(payload + 4, now - device->happened[event->counter % SLOTS]);
    else
        memset(payload + 4, AGE_UNKNOWN_BYTE, 4);
    payload[8] = event->kind;
    memcpy(payload + 9, event->data, event->length);
    send_frame(device, EVENT, ++device->seq, payload, 9 + (size_t)event->length);
}

static void send_heartbeat(struct fdl *device, uint32_t now)
{
    uint8_t payload[9];
    put32(payload, now - device->started_at);
    put32(payload + 4, device->memory->next);
    payload[8] = (uint8_t)((device->open ? 0 : NEEDS_HELLO) | (device->standing ? FAULTY : 0));
    send_frame(device, HEARTBEAT, ++device->seq, payload, sizeof payload);
}

/* ---- what the host sends */

static void hear_hello(struct fdl *device, uint8_t seq, const uint8_t *payload, size_t length, uint32_t now)
{
    if (length >= 9 && payload[0] == FDL_VERSION) {
        uint32_t epoch = get32(payload + 1), last = get32(payload + 5);
        device->open = epoch == device->memory->epoch && last < device->memory->next;
        if (device->open) {
            device->position = last + 1;
            device->send_at = now;
        }
    }
    send_identity(device, seq);
}

static void hear_ack(struct fdl *device, const uint8_t *payload, uint32_t now)
{
    uint32_t counter = get32(payload + 4);
    if (get32(payload) != device->memory->epoch || counter < device->position || counter >= device->memory->next)
        return;
    device->position = counter + 1;
    device->send_at = now;
}

static void hear_nak(struct fdl *device, const uint8_t *payload, uint32_t now)
{
    uint32_t expected = get32(payload + 5);
    if (get32(payload + 1) != device->memory->epoch || expected == 0 || expected > device->memory->next)
        return;
    device->position = expected;
    device->send_at = now;
}

static void send_answer(struct fdl *device, uint8_t seq, const struct fdl_answer *answer)
{
    uint8_t payload[6 + FDL_ANSWER_DATA];
    put32(payload, answer->ticket);
    payload[4] = answer->status;
    payload[5] = answer->reason;
    memcpy(payload + 6, answer->data, answer->length);
    send_frame(device, ANSWER, seq, payload, 6 + (size_t)answer->length);
}

static void tell_fault(struct fdl *device, size_t index, uint32_t now)
{
    uint8_t data[3] = {device->faults[index].code, device->faults[index].severity, device->faults[index].where};
    fdl_record(device, FDL_FAULT_BEGAN, data, sizeof data, now);
}

static void hear_command(struct fdl *device, uint8_t seq, const uint8_t *payload, size_t length, uint32_t now)
{
    uint32_t ticket = get32(payload);
    for (size_t at = 0; at < FDL_ANSWERS; at++)
        if (device->answers[at].ticket == ticket && ticket) {
            send_answer(device, seq, &device->answers[at]);
            return;
        }
    struct fdl_answer *answer = &device->answers[device->next_answer];
    device->next_answer = (device->next_answer + 1) % FDL_ANSWERS;
    memset(answer, 0, sizeof *answer);
    answer->ticket = ticket;
    answer->status = FDL_NOT_KNOWN;
    if (payload[4] == SELF_TEST && length == 5) {
        answer->status = FDL_TAKEN;
        for (size_t at = 0; at < device->standing; at++)
            tell_fault(device, at, now);
    } else if (device->order) {
        device->order(device, device->context, payload[4], payload + 5, length - 5, now, answer);
    }
    send_answer(device, seq, answer);
}

static void hear_frame(struct fdl *device, uint8_t *bytes, size_t length, uint32_t now)
{
    length = unstuff(bytes, length);
    if (length == 0)
        return;
    const uint8_t *payload = bytes + HEAD;
    size_t size = length - HEAD - CRC;
    switch (bytes[1]) {
    case HELLO:
        hear_hello(device, bytes[2], payload, size, now);
        break;
    case ACK:
        if (device->open && size >= 8)
            hear_ack(device, payload, now);
        break;
    case NAK:
        if (device->open && size >= 9)
            hear_nak(device, payload, now);
        break;
    case COMMAND:
        if (device->open && size >= 5)
            hear_command(device, bytes[2], payload, size, now);
        break;
    default: /* a later version, or a frame of our own that came back */
        break;
    }
}

/* ---- for the firmware */

void fdl_start(struct fdl *device, struct fdl_memory *memory, const struct fdl_unit *unit, fdl_send *send,
               fdl_order *order, void *context, uint32_t draw, uint32_t now)
{
    bool whole = memory->mark == MARK && memory->epoch && memory->next;
    for (uint32_t counter = memory->next > FDL_RING ? memory->next - FDL_RING : 1; whole && counter < memory->next;
         counter++)
        whole = memory->ring[counter % SLOTS].counter == counter &&
                memory->ring[counter % SLOTS].length <= FDL_EVENT_DATA;
    if (!whole || memory->next > 0xFFFF0000u) { /* lost, or soon to wrap: count anew in another epoch */
        uint32_t before = memory->mark == MARK ? memory->epoch : 0;
        memset(memory, 0, sizeof *memory);
        memory->epoch = draw && draw != before ? draw : before + 1 ? before + 1 : 1;
        memory->next = 1;
        memory->mark = MARK;
    }
    memset(device, 0, sizeof *device);
    device->memory = memory;
    device->unit = unit;
    device->send = send;
    device->order = order;
    device->context = context;
    device->started_at = device->beat_at = now;
    device->first_known = memory->next;
    fdl_record(device, FDL_STARTED, NULL, 0, now);
}

bool fdl_record(struct fdl *device, uint8_t kind, const uint8_t *data, size_t length, uint32_t now)
{
    if (length > FDL_EVENT_DATA)
        return false;
    uint32_t counter = device->memory->next;
    struct fdl_event *event = &device->memory->ring[counter % SLOTS];
    event->counter = counter;
    event->kind = kind;
    event->length = (uint8_t)length;
    if (length)
        memcpy(event->data, data, length);
    device->happened[counter % SLOTS] = now;
    if (device->position == counter)
        device->send_at = now;
    /* From here on the event counts. A firmware with a cache, or with flash, writes the event out before this line. */
    ((volatile struct fdl_memory *)device->memory)->next = counter + 1;
    return true;
}

bool fdl_fault_stands(const struct fdl *device, uint8_t code)
{
    for (size_t at = 0; at < device->standing; at++)
        if (device->faults[at].code == code)
            return true;
    return false;
}

void fdl_fault(struct fdl *device, uint8_t code, uint8_t severity, uint8_t where, uint32_t now)
{
    if (fdl_fault_stands(device, code) || device->standing == FDL_FAULTS)
        return;
    size_t at = device->standing++;
    device->faults[at].code = code;
    device->faults[at].severity = severity;
    device->faults[at].where = where;
    tell_fault(device, at, now);
}

void fdl_fault_over(struct fdl *device, uint8_t code, uint32_t now)
{
    for (size_t at = 0; at < device->standing; at++)
        if (device->faults[at].code == code) {
            device->faults[at] = device->faults[--device->standing];
            fdl_record(device, FDL_FAULT_OVER, &code, 1, now);
            return;
        }
}

void fdl_hear(struct fdl *device, const uint8_t *bytes, size_t length, uint32_t now)
{
    for (size_t at = 0; at < length; at++) {
        if (bytes[at] == 0) {
            if (device->heard_length && !device->too_long)
                hear_frame(device, device->heard, device->heard_length, now);
            device->heard_length = 0;
            device->too_long = false;
        } else if (device->heard_length < FDL_MAX_STUFFED) {
            device->heard[device->heard_length++] = bytes[at];
        } else {
            device->too_long = true;
        }
    }
    fdl_poll(device, now);
}

void fdl_poll(struct fdl *device, uint32_t now)
{
    if (due(device->beat_at, now)) {
        device->beat_at += BEAT_MS;
        if (due(device->beat_at, now)) /* it was busy for more than a second */
            device->beat_at = now + BEAT_MS;
        send_heartbeat(device, now);
    }
    if (device->open && device->position < device->memory->next && due(device->send_at, now))
        send_event(device, now);
}
