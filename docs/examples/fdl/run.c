/* Runs a device of these examples on a computer with POSIX: `fdl-shaker MEMORY PORT`.
 *
 * MEMORY is a file, the memory that survives a loss of power; PORT a serial port or a pseudo terminal. Lines on standard
 * input are what hands do at the device. Ending the process, in any way, is a loss of power.
 */
#define _DEFAULT_SOURCE
#include "device.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 128, POLL_MS = 5 };

static uint32_t milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint32_t)((uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000);
}

static void put(void *context, const uint8_t *bytes, size_t length)
{
    int port = *(int *)context;
    while (length) {
        ssize_t done = write(port, bytes, length);
        if (done < 0 && errno != EINTR)
            return; /* the line takes no more: what is lost is sent again */
        if (done > 0) {
            bytes += done;
            length -= (size_t)done;
        }
    }
}

static int open_port(const char *path)
{
    int port = open(path, O_RDWR | O_NOCTTY | O_NONBLOCK);
    struct termios line;
    if (port >= 0 && tcgetattr(port, &line) == 0) {
        cfmakeraw(&line);
        line.c_cflag = CS8 | CREAD | CLOCAL;
        cfsetspeed(&line, B115200);
        tcsetattr(port, TCSANOW, &line);
    }
    return port;
}

static struct fdl_memory *open_memory(const char *path)
{
    int file = open(path, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, sizeof(struct fdl_memory)) != 0)
        return NULL;
    void *memory = mmap(NULL, sizeof(struct fdl_memory), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return memory == MAP_FAILED ? NULL : memory;
}

static uint32_t draw(void)
{
    uint32_t number = 0;
    int source = open("/dev/urandom", O_RDONLY);
    if (source >= 0) {
        if (read(source, &number, sizeof number) < 0)
            number = 0;
        close(source);
    }
    return number;
}

/* Each whole line of standard input is done; false at its end. */
static bool hear_hands(char *line, size_t *length)
{
    char bytes[LINE];
    ssize_t count = read(STDIN_FILENO, bytes, sizeof bytes);
    for (ssize_t at = 0; at < count; at++) {
        if (bytes[at] != '\n') {
            if (*length < LINE - 1)
                line[(*length)++] = bytes[at];
            continue;
        }
        line[*length] = '\0';
        *length = 0;
        printf("%s %s\n", device_hand(line, milliseconds()) ? "done" : "unknown", line);
        fflush(stdout);
    }
    return count > 0 || (count < 0 && errno == EINTR);
}

int main(int count, char **argument)
{
    if (count != 3) {
        fprintf(stderr, "usage: %s MEMORY PORT\n", argument[0]);
        return 2;
    }
    struct fdl_memory *memory = open_memory(argument[1]);
    int port = open_port(argument[2]);
    if (!memory || port < 0) {
        fprintf(stderr, "%s: %s: %s\n", argument[0], memory ? argument[2] : argument[1], strerror(errno));
        return 1;
    }
    char line[LINE];
    size_t length = 0;
    struct pollfd sources[2] = {{port, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
    device_start(memory, put, &port, draw(), milliseconds());
    for (;;) {
        poll(sources, 2, POLL_MS);
        if (sources[0].revents & POLLIN) {
            uint8_t bytes[256];
            ssize_t got = read(port, bytes, sizeof bytes);
            if (got > 0)
                device_hear(bytes, (size_t)got, milliseconds());
        } else if (sources[0].revents & (POLLERR | POLLNVAL)) {
            return 1;
        }
        if (sources[1].revents && !hear_hands(line, &length))
            sources[1].fd = -1; /* nobody stands at the device */
        device_poll(milliseconds());
    }
}
