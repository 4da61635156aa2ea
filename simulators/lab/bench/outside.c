/* The subscriber, bridge and publisher of `feltd bench`, in C for their low cost. outside.py builds and runs it.

   outside tap PORT FILE TOPIC...             subscribe; write each message with its time of arrival
   outside bridge PORT TTY TOPIC FILE DELAY   publish each line of a tty; FILE: one fdatasync for the lines that were
                                              read together, "-" for none; DELAY: microseconds to wait before publishing
   outside pace PORT TOPIC FILE RATE COUNT    publish at a rate (0: as fast as possible); write the time of each message

   Times are nanoseconds of CLOCK_MONOTONIC, which Python's time.monotonic_ns() reads, too. Everything is on loopback. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mosquitto.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define JOURNAL (4 << 20) /* bytes; written over and over, so that no fdatasync changes the size of the file */

static volatile sig_atomic_t ended;
static FILE *out;
static char **topics;
static int topic_count, subscribed, connected;
static long acknowledged;

static void on_signal(int number) { (void)number; ended = 1; }

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void wait_until(int64_t due) {
    struct timespec t = {due / 1000000000, due % 1000000000};
    while (!ended && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) {}
}

static void fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(3);
}

static void say_ready(void) {
    puts("ready");
    fflush(stdout);
}

static void on_message(struct mosquitto *client, void *user, const struct mosquitto_message *message) {
    int64_t at = now();
    int32_t sizes[2] = {(int32_t)strlen(message->topic), message->payloadlen};
    (void)client, (void)user;
    if (message->retain) return;
    fwrite(&at, sizeof at, 1, out);
    fwrite(sizes, sizeof sizes, 1, out);
    fwrite(message->topic, 1, sizes[0], out);
    fwrite(message->payload, 1, sizes[1], out);
}

static void on_subscribe(struct mosquitto *client, void *user, int id, int count, const int *granted) {
    (void)client, (void)user, (void)id, (void)count, (void)granted;
    if (++subscribed == topic_count) say_ready();
}

static void on_publish(struct mosquitto *client, void *user, int id) {
    (void)client, (void)user, (void)id;
    acknowledged++;
}

static void on_connect(struct mosquitto *client, void *user, int code) {
    (void)user;
    if (code) exit(3);
    connected = 1;
    for (int i = 0; i < topic_count; i++) mosquitto_subscribe(client, NULL, topics[i], 0);
}

static struct mosquitto *client_of(const char *port) {
    mosquitto_lib_init();
    struct mosquitto *client = mosquitto_new(NULL, true, NULL);
    mosquitto_int_option(client, MOSQ_OPT_TCP_NODELAY, 1);
    mosquitto_max_inflight_messages_set(client, 0);
    mosquitto_connect_callback_set(client, on_connect);
    mosquitto_message_callback_set(client, on_message);
    mosquitto_publish_callback_set(client, on_publish);
    mosquitto_subscribe_callback_set(client, on_subscribe);
    if (mosquitto_connect(client, "127.0.0.1", atoi(port), 60)) fail("broker");
    return client;
}

static int tap(char **word, int words) {
    out = fopen(word[1], "wb");
    if (!out) fail(word[1]);
    setvbuf(out, NULL, _IOFBF, 1 << 16);
    topics = word + 2;
    topic_count = words - 2;
    struct mosquitto *client = client_of(word[0]);
    struct pollfd waiting = {mosquitto_socket(client), POLLIN, 0};
    while (!ended) {
        if (poll(&waiting, 1, 10) == 0) fflush(out); /* no more messages for now */
        if (waiting.revents && mosquitto_loop_read(client, 100)) break;
        if (mosquitto_want_write(client)) mosquitto_loop_write(client, 1);
        mosquitto_loop_misc(client);
    }
    fclose(out);
    return 0;
}

static int bridge(char **word) {
    static char text[65536], zeros[JOURNAL];
    int64_t delay = atoll(word[4]) * 1000;
    off_t at = 0;
    size_t held = 0;
    int journal = -1;
    if (strcmp(word[3], "-")) {
        journal = open(word[3], O_RDWR | O_CREAT, 0600);
        if (journal < 0 || write(journal, zeros, JOURNAL) != JOURNAL || fsync(journal)) fail(word[3]);
    }
    struct mosquitto *client = client_of(word[0]);
    while (!connected) mosquitto_loop(client, 10, 1);
    int tty = open(word[1], O_RDWR | O_NOCTTY | O_NONBLOCK);
    struct termios settings;
    if (tty < 0 || tcgetattr(tty, &settings)) fail(word[1]);
    cfmakeraw(&settings);
    tcsetattr(tty, TCSANOW, &settings);
    say_ready();
    while (!ended) {
        struct pollfd waiting[2] = {{tty, POLLIN, 0}, {mosquitto_socket(client), POLLIN, 0}};
        if (mosquitto_want_write(client)) waiting[1].events |= POLLOUT;
        if (poll(waiting, 2, 1000) < 0) continue;
        if (waiting[1].revents & POLLIN && mosquitto_loop_read(client, 100)) return 1;
        if (waiting[1].revents & POLLOUT) mosquitto_loop_write(client, 1);
        mosquitto_loop_misc(client);
        if (!waiting[0].revents) continue;
        ssize_t more = read(tty, text + held, sizeof text - held);
        if (more <= 0) continue;
        int64_t arrived = now();
        held += more;
        char *line = text, *end = memrchr(text, '\n', held);
        if (!end) continue;
        if (journal >= 0) {
            size_t size = end + 1 - text;
            if (at + size > JOURNAL) at = 0;
            if (pwrite(journal, text, size, at) < 0 || fdatasync(journal)) fail(word[3]);
            at += size;
        }
        if (delay) wait_until(arrived + delay);
        while ((end = memchr(line, '\n', text + held - line))) {
            mosquitto_publish(client, NULL, word[2], (int)(end - line), line, 1, false);
            line = end + 1;
        }
        held = text + held - line;
        memmove(text, line, held);
    }
    return 0;
}

static int pace(char **word) {
    double rate = atof(word[3]);
    long count = atol(word[4]);
    char payload[200];
    memset(payload, 'x', sizeof payload);
    out = fopen(word[2], "wb");
    if (!out) fail(word[2]);
    struct mosquitto *client = client_of(word[0]);
    while (!connected) mosquitto_loop(client, 10, 1);
    int64_t began = now();
    for (long i = 0; i < count && !ended; i++) {
        if (rate > 0) wait_until(began + (int64_t)(i * 1e9 / rate));
        int64_t at = now();
        fwrite(&at, sizeof at, 1, out);
        mosquitto_publish(client, NULL, word[1], sizeof payload, payload, 1, false);
        if (rate > 0 || i % 16 == 0) mosquitto_loop(client, 0, 1);
    }
    while (!ended && acknowledged < count) mosquitto_loop(client, 10, 1);
    fclose(out);
    return 0;
}

int main(int count, char **word) {
    signal(SIGTERM, on_signal);
    signal(SIGINT, on_signal);
    if (count >= 5 && !strcmp(word[1], "tap")) return tap(word + 2, count - 2);
    if (count == 7 && !strcmp(word[1], "bridge")) return bridge(word + 2);
    if (count == 7 && !strcmp(word[1], "pace")) return pace(word + 2);
    fputs("see the top of outside.c\n", stderr);
    return 2;
}
