/* Counts the calls of a kind on paths with a given part, and lets one of them fail, or end the process.
 * FAULTS_UNDER: the part; FAULTS_KIND: read or change; FAULTS_AT: the call, from 1, or 0 for none;
 * FAULTS_WITH: the error, or 0 to kill; FAULTS_COUNT: the file that gets the number of calls at the end. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define OPEN_FILES 65536

static atomic_int calls;
static atomic_char ours[OPEN_FILES];

static const char *setting(const char *name) {
    const char *value = getenv(name);
    return value ? value : "";
}

static int is_ours(const char *path) {
    const char *under = getenv("FAULTS_UNDER");
    return under && path && strstr(path, under) != NULL;
}

/* Whether this call, of that kind, is the one to fail. */
static int is_due(const char *kind) {
    if (strcmp(setting("FAULTS_KIND"), kind)) return 0;
    if (atomic_fetch_add(&calls, 1) + 1 != atoi(setting("FAULTS_AT"))) return 0;
    int with = atoi(setting("FAULTS_WITH"));
    if (with == 0) kill(getpid(), SIGKILL);
    errno = with;
    return 1;
}

__attribute__((destructor)) static void count(void) {
    const char *path = getenv("FAULTS_COUNT");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file) return;
    fprintf(file, "%d", atomic_load(&calls));
    fclose(file);
}

static int opened(int fd, const char *path) {
    if (fd >= 0 && fd < OPEN_FILES) ours[fd] = is_ours(path);
    return fd;
}

static int opens(const char *path, int flags) {
    return is_ours(path) && is_due(flags & O_CREAT ? "change" : "read");
}

#define OPEN(name)                                              \
    int name(const char *path, int flags, ...) {                \
        va_list rest;                                           \
        va_start(rest, flags);                                  \
        mode_t mode = va_arg(rest, mode_t);                     \
        va_end(rest);                                           \
        if (opens(path, flags)) return -1;                      \
        return opened(REAL(name)(path, flags, mode), path);     \
    }
OPEN(open)
OPEN(open64)

DIR *opendir(const char *path) {
    return is_ours(path) && is_due("read") ? NULL : REAL(opendir)(path);
}

static int is_our_file(int fd) { return fd >= 0 && fd < OPEN_FILES && ours[fd]; }

ssize_t read(int fd, void *to, size_t len) {
    return is_our_file(fd) && is_due("read") ? -1 : REAL(read)(fd, to, len);
}
ssize_t pread64(int fd, void *to, size_t len, off64_t at) {
    return is_our_file(fd) && is_due("read") ? -1 : REAL(pread64)(fd, to, len, at);
}
ssize_t write(int fd, const void *from, size_t len) {
    return is_our_file(fd) && is_due("change") ? -1 : REAL(write)(fd, from, len);
}
int fsync(int fd) { return is_our_file(fd) && is_due("change") ? -1 : REAL(fsync)(fd); }
int fdatasync(int fd) { return is_our_file(fd) && is_due("change") ? -1 : REAL(fdatasync)(fd); }
int rename(const char *from, const char *to) {
    return is_ours(to) && is_due("change") ? -1 : REAL(rename)(from, to);
}
int unlink(const char *path) { return is_ours(path) && is_due("change") ? -1 : REAL(unlink)(path); }
int mkdir(const char *path, mode_t mode) {
    return is_ours(path) && is_due("change") ? -1 : REAL(mkdir)(path, mode);
}
int close(int fd) {
    if (fd >= 0 && fd < OPEN_FILES) ours[fd] = 0;
    return REAL(close)(fd);
}
