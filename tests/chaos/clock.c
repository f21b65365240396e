// LD_PRELOAD: the wall clock of one process, CHAOS_CLOCK (a file of one 64-bit number of seconds) away from the machine's. Monotonic clocks are left
// alone, as when somebody sets a machine's time. (Debian's libfaketime does not come up in a process that asks for the time this early.)
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile long* offset;

__attribute__((constructor)) static void begin(void) {
  const char* path = getenv("CHAOS_CLOCK");
  const int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  void* at = fd < 0 ? MAP_FAILED : mmap(0, sizeof(long), PROT_READ, MAP_SHARED, fd, 0);
  if (at != MAP_FAILED) offset = at;
  if (fd >= 0) close(fd);
}

int clock_gettime(clockid_t id, struct timespec* time) {
  const long failed = syscall(SYS_clock_gettime, id, time);
  if (failed == 0 && offset && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) time->tv_sec += *offset;
  return (int)failed;
}

int gettimeofday(struct timeval* time, void* zone) {
  struct timespec now;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &now);
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}
