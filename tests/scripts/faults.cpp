// A library for LD_PRELOAD whose calls fail as FAULTS says, counted from the start of main: "write:5,stat:3+" fails
// the 5th call of kind write and every call of kind stat from the 3rd on. A write that fails first takes half of what
// it is given, as a full disk does, if all later ones fail too. A call of kind short, a read or a write, takes or gives
// half; of kind lock and flush, locks and the flushing of a directory are not supported; one of kind eintr is interrupted by a signal, once. kill, term and int send that signal to the process before
// the given call that changes a file. With FAULT_COMMAND, processes with another first argument are left alone. At the
// end the number of calls of each kind is added to the file FAULT_COUNT.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

enum Kind {
  kWrite,
  kTruncate,
  kFsync,
  kRename,
  kRemove,
  kOpen,
  kAllocation,
  kThread,
  kStat,
  kMmap,
  kRead,
  kShort,
  kEintr,
  kKill,
  kTerm,
  kInt,
  kLock,
  kFlush,
  kKinds
};
constexpr const char* kNames[kKinds] = {"write",      "truncate", "fsync", "rename", "remove", "open",
                                        "allocation", "thread",   "stat",  "mmap",   "read",   "short",
                                        "eintr",      "kill",     "term",  "int",    "lock",   "flush"};

bool armed = false;  // from the start of main
long first[kKinds];  // 0: none fails
bool ongoing[kKinds];
std::atomic<long> calls[kKinds];

// Counts a call and returns whether it is to fail, with that error.
bool fails(Kind kind, int error) {
  if (!armed) return false;
  const long call = ++calls[kind];
  if (first[kind] == 0 || (ongoing[kind] ? call < first[kind] : call != first[kind])) return false;
  errno = error;
  return true;
}

// Counts a call that changes a file, and sends the signals that are due before it.
void count_change() {
  if (fails(kKill, 0)) ::raise(SIGKILL);
  if (fails(kTerm, 0)) ::raise(SIGTERM);
  if (fails(kInt, 0)) ::raise(SIGINT);
}

bool fails_change(Kind kind, int error) {
  count_change();
  return fails(kind, error);
}

template <class F>
F* next(F*, const char* name) {
  return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

void write_counts() {
  armed = false;
  const char* path = std::getenv("FAULT_COUNT");
  if (path == nullptr) return;
  const long file = ::syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND, 0644);
  for (int kind = 0; kind < kKinds; ++kind) {
    char text[64];
    const int size = std::snprintf(text, sizeof text, "%s %ld\n", kNames[kind], calls[kind].load());
    ::syscall(SYS_write, file, text, size);
  }
  ::syscall(SYS_close, file);
}

// Reads "write:5,stat:3+".
void read_plan(const char* plan) {
  while (plan != nullptr && *plan != '\0') {
    const char* colon = std::strchr(plan, ':');
    if (colon == nullptr) return;
    char* end = nullptr;
    const long number = std::strtol(colon + 1, &end, 10);
    for (int kind = 0; kind < kKinds; ++kind) {
      const std::size_t size = std::strlen(kNames[kind]);
      if (size != static_cast<std::size_t>(colon - plan) || std::strncmp(plan, kNames[kind], size) != 0)
        continue;
      first[kind] = number;
      ongoing[kind] = *end == '+';
    }
    plan = std::strchr(end, ',');
    if (plan != nullptr) ++plan;
  }
}

int (*program)(int, char**, char**);

int armed_main(int argc, char** argv, char** environment) {
  const char* command = std::getenv("FAULT_COMMAND");
  if (command == nullptr || (argc > 1 && std::strcmp(argv[1], command) == 0)) {
    std::atexit(write_counts);
    read_plan(std::getenv("FAULTS"));
    armed = true;
  }
  return program(argc, argv, environment);
}

}  // namespace

#define REAL(name) static const auto real = next(&name, #name)

extern "C" {

int __open_2(const char* path, int flags);

int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv, void (*init)(), void (*fini)(),
                      void (*loader_fini)(), void* stack_end) {
  using Start = int(int (*)(int, char**, char**), int, char**, void (*)(), void (*)(), void (*)(), void*);
  program = main;
  return reinterpret_cast<Start*>(::dlsym(RTLD_NEXT, "__libc_start_main"))(armed_main, argc, argv, init, fini,
                                                                           loader_fini, stack_end);
}

ssize_t write(int file, const void* data, size_t size) {
  REAL(write);
  if (file <= 2) return real(file, data, size);
  count_change();
  if (fails(kEintr, EINTR)) return -1;
  const bool is_short = fails(kShort, 0);
  if (fails(kWrite, ENOSPC) && !(ongoing[kWrite] && calls[kWrite] == first[kWrite] && size > 1)) return -1;
  const bool half = is_short || (ongoing[kWrite] && calls[kWrite] == first[kWrite]);
  return real(file, data, half && size > 1 ? size / 2 : size);
}

ssize_t pwrite(int file, const void* data, size_t size, off_t at) {
  REAL(pwrite);
  return fails_change(kWrite, ENOSPC) ? -1 : real(file, data, size, at);
}

ssize_t read(int file, void* data, size_t size) {
  REAL(read);
  if (fails(kEintr, EINTR) || fails(kRead, EIO)) return -1;
  return real(file, data, size > 1 && fails(kShort, 0) ? size / 2 : size);
}

pid_t waitpid(pid_t child, int* status, int options) {
  REAL(waitpid);
  return fails(kEintr, EINTR) ? -1 : real(child, status, options);
}

int ftruncate(int file, off_t size) noexcept {
  REAL(ftruncate);
  return fails_change(kTruncate, EIO) ? -1 : real(file, size);
}

int flock(int file, int operation) noexcept {
  REAL(flock);
  return fails(kLock, EOPNOTSUPP) ? -1 : real(file, operation);
}

int fsync(int file) {
  REAL(fsync);
  if ((::fcntl(file, F_GETFL) & O_DIRECTORY) != 0 && fails(kFlush, ENOTSUP)) return -1;
  return fails_change(kFsync, EIO) ? -1 : real(file);
}

int fdatasync(int file) {
  REAL(fdatasync);
  return fails_change(kFsync, EIO) ? -1 : real(file);
}

int rename(const char* from, const char* to) noexcept {
  REAL(rename);
  return fails_change(kRename, EIO) ? -1 : real(from, to);
}

int remove(const char* path) noexcept {
  REAL(remove);
  return fails_change(kRemove, EIO) ? -1 : real(path);
}

int stat(const char* path, struct stat* result) noexcept {
  REAL(stat);
  return fails(kStat, EIO) ? -1 : real(path, result);
}

int lstat(const char* path, struct stat* result) noexcept {
  REAL(lstat);
  return fails(kStat, EIO) ? -1 : real(path, result);
}

int fstat(int file, struct stat* result) noexcept {
  REAL(fstat);
  return fails(kStat, EIO) ? -1 : real(file, result);
}

int fstat64(int file, struct stat64* result) noexcept {
  REAL(fstat64);
  return fails(kStat, EIO) ? -1 : real(file, result);
}

void* mmap(void* address, size_t size, int protection, int flags, int file, off_t offset) noexcept {
  REAL(mmap);
  return fails(kMmap, ENOMEM) ? MAP_FAILED : real(address, size, protection, flags, file, offset);
}

int open(const char* path, int flags, ...) {
  REAL(open);
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  if ((flags & (O_CREAT | O_TRUNC)) != 0) count_change();
  return fails(kOpen, EMFILE) ? -1 : real(path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  REAL(open64);
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  if ((flags & (O_CREAT | O_TRUNC)) != 0) count_change();
  return fails(kOpen, EMFILE) ? -1 : real(path, flags, mode);
}

int __open_2(const char* path, int flags) {
  REAL(__open_2);
  return fails(kOpen, EMFILE) ? -1 : real(path, flags);
}

int openat(int folder, const char* path, int flags, ...) {
  REAL(openat);
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  if ((flags & (O_CREAT | O_TRUNC)) != 0) count_change();
  return fails(kOpen, EMFILE) ? -1 : real(folder, path, flags, mode);
}

FILE* fopen(const char* path, const char* mode) {
  REAL(fopen);
  return fails(kOpen, EMFILE) ? nullptr : real(path, mode);
}

FILE* fopen64(const char* path, const char* mode) {
  REAL(fopen64);
  return fails(kOpen, EMFILE) ? nullptr : real(path, mode);
}

DIR* opendir(const char* path) {
  REAL(opendir);
  return fails(kOpen, EMFILE) ? nullptr : real(path);
}

// dlsym may allocate, so the C library's own names are called.
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* old, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) { return fails(kAllocation, ENOMEM) ? nullptr : __libc_malloc(size); }

void* calloc(size_t count, size_t size) {
  return fails(kAllocation, ENOMEM) ? nullptr : __libc_calloc(count, size);
}

void* realloc(void* old, size_t size) {
  return fails(kAllocation, ENOMEM) ? nullptr : __libc_realloc(old, size);
}

void* aligned_alloc(size_t alignment, size_t size) {
  return fails(kAllocation, ENOMEM) ? nullptr : __libc_memalign(alignment, size);
}

int posix_memalign(void** result, size_t alignment, size_t size) {
  if (fails(kAllocation, ENOMEM)) return ENOMEM;
  *result = __libc_memalign(alignment, size);
  return *result == nullptr ? ENOMEM : 0;
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) {
  REAL(pthread_create);
  return fails(kThread, EAGAIN) ? EAGAIN : real(thread, attributes, start, argument);
}

}  // extern "C"
