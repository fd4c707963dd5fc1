/* The time of day of a process, moved by so many seconds as the file that SHIFTED_CLOCK names holds (a 64-bit integer,
 * mapped, so that it may change at any moment). Clocks that only go forward stay as they are, as on a machine whose time
 * of day is set.
 *
 * Who waits until a time of day waits in the kernel, which knows nothing of this: such waits are moved back. A time since
 * the machine was started is told from a time of day by its size. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static volatile const int64_t *shift;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("SHIFTED_CLOCK");
    int file = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    void *at = mmap(NULL, sizeof *shift, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (at != MAP_FAILED) shift = at;
}

static int64_t seconds(void) { return shift == NULL ? 0 : *shift; }

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (real == NULL) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real == NULL ? (int)syscall(SYS_clock_gettime, clock, now) : real(clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += seconds();
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec exact;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &exact)) return -1;
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (now != NULL) *now = exact.tv_sec;
    return exact.tv_sec;
}

static struct timespec until(const struct timespec *then) {
    struct timespec real = *then;
    if (real.tv_sec > 1000000000) real.tv_sec -= seconds();
    return real;
}

/* Of what has had two meanings in glibc, the later one. */
static void *next(const char *name) {
    void *found = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
    return found == NULL ? dlsym(RTLD_NEXT, name) : found;
}

int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict then) {
    static int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    if (real == NULL) real = (int (*)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *))next(__func__);
    struct timespec moved = until(then);
    return real(cond, mutex, &moved);
}

int cnd_timedwait(cnd_t *restrict cond, mtx_t *restrict mutex, const struct timespec *restrict then) {
    static int (*real)(cnd_t *, mtx_t *, const struct timespec *);
    if (real == NULL) real = (int (*)(cnd_t *, mtx_t *, const struct timespec *))next(__func__);
    struct timespec moved = until(then);
    return real(cond, mutex, &moved);
}

int sem_timedwait(sem_t *restrict sem, const struct timespec *restrict then) {
    static int (*real)(sem_t *, const struct timespec *);
    if (real == NULL) real = (int (*)(sem_t *, const struct timespec *))next(__func__);
    struct timespec moved = until(then);
    return real(sem, &moved);
}
