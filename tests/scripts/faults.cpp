// A library for LD_PRELOAD whose calls fail: from the FAULT_AT-th call of kind FAULT_KIND on, counted from
// the start of main, or that one only with FAULT_ONCE. A write that fails first takes half of what it is
// given, as a full disk does. With FAULT_COMMAND, processes with another first argument are left alone.
// Without FAULT_AT nothing fails, and at the end the number of calls is added to the file FAULT_COUNT.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

enum class Kind { none, write, truncate, fsync, rename, remove, open, allocation, thread };
constexpr const char* kNames[] = {"none",   "write", "truncate",   "fsync", "rename",
                                  "remove", "open",  "allocation", "thread"};

Kind chosen = Kind::none;  // until main starts
long first = 0;            // 0: none fails
bool once = false;
std::atomic<long> calls{0};

bool fails(Kind kind, int error) {
  if (kind != chosen) return false;
  const long call = ++calls;
  if (first == 0 || (once ? call != first : call < first)) return false;
  errno = error;
  return true;
}

template <class F>
F* next(F*, const char* name) {
  return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

void write_count() {
  const long count = calls;
  chosen = Kind::none;
  const char* path = std::getenv("FAULT_COUNT");
  if (path == nullptr) return;
  char text[32];
  const int size = std::snprintf(text, sizeof text, "%ld\n", count);
  const long file = ::syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND, 0644);
  ::syscall(SYS_write, file, text, size);
  ::syscall(SYS_close, file);
}

int (*program)(int, char**, char**);

int armed_main(int argc, char** argv, char** environment) {
  const char* command = std::getenv("FAULT_COMMAND");
  const char *kind = std::getenv("FAULT_KIND"), *at = std::getenv("FAULT_AT");
  if (kind != nullptr && (command == nullptr || (argc > 1 && std::strcmp(argv[1], command) == 0))) {
    std::atexit(write_count);
    once = std::getenv("FAULT_ONCE") != nullptr;
    first = at != nullptr ? std::atol(at) : 0;
    int index = 0;
    for (const char* name : kNames) {
      if (std::strcmp(kind, name) == 0) chosen = static_cast<Kind>(index);
      ++index;
    }
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
  if (file > 2 && fails(Kind::write, ENOSPC))
    return calls == first && size > 1 ? real(file, data, size / 2) : -1;
  return real(file, data, size);
}

ssize_t pwrite(int file, const void* data, size_t size, off_t at) {
  REAL(pwrite);
  return fails(Kind::write, ENOSPC) ? -1 : real(file, data, size, at);
}

int ftruncate(int file, off_t size) noexcept {
  REAL(ftruncate);
  return fails(Kind::truncate, EIO) ? -1 : real(file, size);
}

int fsync(int file) {
  REAL(fsync);
  return fails(Kind::fsync, EIO) ? -1 : real(file);
}

int fdatasync(int file) {
  REAL(fdatasync);
  return fails(Kind::fsync, EIO) ? -1 : real(file);
}

int rename(const char* from, const char* to) noexcept {
  REAL(rename);
  return fails(Kind::rename, EIO) ? -1 : real(from, to);
}

int remove(const char* path) noexcept {
  REAL(remove);
  return fails(Kind::remove, EIO) ? -1 : real(path);
}

int open(const char* path, int flags, ...) {
  REAL(open);
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return fails(Kind::open, EMFILE) ? -1 : real(path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  REAL(open64);
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return fails(Kind::open, EMFILE) ? -1 : real(path, flags, mode);
}

int __open_2(const char* path, int flags) {
  REAL(__open_2);
  return fails(Kind::open, EMFILE) ? -1 : real(path, flags);
}

int openat(int folder, const char* path, int flags, ...) {
  REAL(openat);
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return fails(Kind::open, EMFILE) ? -1 : real(folder, path, flags, mode);
}

FILE* fopen(const char* path, const char* mode) {
  REAL(fopen);
  return fails(Kind::open, EMFILE) ? nullptr : real(path, mode);
}

FILE* fopen64(const char* path, const char* mode) {
  REAL(fopen64);
  return fails(Kind::open, EMFILE) ? nullptr : real(path, mode);
}

DIR* opendir(const char* path) {
  REAL(opendir);
  return fails(Kind::open, EMFILE) ? nullptr : real(path);
}

// dlsym may allocate, so the C library's own names are called.
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* old, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) { return fails(Kind::allocation, ENOMEM) ? nullptr : __libc_malloc(size); }

void* calloc(size_t count, size_t size) {
  return fails(Kind::allocation, ENOMEM) ? nullptr : __libc_calloc(count, size);
}

void* realloc(void* old, size_t size) {
  return fails(Kind::allocation, ENOMEM) ? nullptr : __libc_realloc(old, size);
}

void* aligned_alloc(size_t alignment, size_t size) {
  return fails(Kind::allocation, ENOMEM) ? nullptr : __libc_memalign(alignment, size);
}

int posix_memalign(void** result, size_t alignment, size_t size) {
  if (fails(Kind::allocation, ENOMEM)) return ENOMEM;
  *result = __libc_memalign(alignment, size);
  return *result == nullptr ? ENOMEM : 0;
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) {
  REAL(pthread_create);
  return fails(Kind::thread, EAGAIN) ? EAGAIN : real(thread, attributes, start, argument);
}

}  // extern "C"
