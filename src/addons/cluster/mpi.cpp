#include "addons/cluster/mpi.h"

#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cmath>
#include <csignal>
#include <string_view>

namespace thimble {

namespace {

enum Tag { kData, kEnding };

// Exit status of a process that hangs while it leaves MPI.
volatile std::sig_atomic_t final_status = 0;

// Ends a process that waits in MPI_Init, as with MPICH when another rank has ended before.
extern "C" void on_timeout(int) {
  constexpr std::string_view kMessage =
      "thimble: MPI_Init does not return; another rank has ended before it, or is slow: then set the seconds to\n"
      "wait with THIMBLE_RANK_TIMEOUT\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kMessage.data(), kMessage.size());
  constexpr int kFailed = 2;
  ::_exit(kFailed);
}

// The communicator of all processes that an MPI launcher has started.
class Mpi : public Communicator {
 public:
  Mpi(int rank, int size) : Communicator(rank, size) { share_cores(); }

  // Leaves MPI. After an error messages may be lost, and MPI_Finalize would wait for them.
  ~Mpi() override {
    constexpr unsigned kGrace = 10;  // seconds
    std::signal(SIGALRM, [](int) { ::_exit(final_status); });
    ::alarm(kGrace);  // without memory, any of these calls may hang
    cancel();
    if (!all_ended()) MPI_Abort(MPI_COMM_WORLD, final_status);
    MPI_Finalize();
    ::alarm(0);
  }

 protected:
  void start_send(int to, std::span<const std::byte> bytes) override {
    each_part(bytes, [&](std::span<const std::byte> part) {
      MPI_Isend(part.data(), static_cast<int>(part.size()), MPI_BYTE, to, kData, MPI_COMM_WORLD,
                &add(to, true));
    });
  }

  void start_receive(int from, std::span<std::byte> bytes) override {
    each_part(bytes, [&](std::span<std::byte> part) {
      MPI_Irecv(part.data(), static_cast<int>(part.size()), MPI_BYTE, from, kData, MPI_COMM_WORLD,
                &add(from, false));
    });
  }

  bool done() override {
    std::erase_if(pending_, [](Request& request) {
      int complete = 0;
      MPI_Test(&request.handle, &complete, MPI_STATUS_IGNORE);
      return complete != 0;
    });
    return pending_.empty();
  }

  void cancel() final {
    for (Request& request : pending_) {
      if (!request.sends) MPI_Cancel(&request.handle);
      MPI_Request_free(&request.handle);
    }
    pending_.clear();
  }

  std::vector<int> unanswered() const override {
    std::vector<int> ranks;
    for (const Request& request : pending_) ranks.push_back(request.peer);
    return ranks;
  }

  void send_ending(int to, Ending ending) override {
    MPI_Request request;
    ending_ = {ending.status, ending.has_message ? 1 : 0};
    MPI_Isend(ending_.data(), 2, MPI_INT, to, kEnding, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
    final_status = ending.status;
  }

  std::optional<std::pair<int, Ending>> next_ending() override {
    int found = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, kEnding, MPI_COMM_WORLD, &found, &status);
    if (found == 0) return std::nullopt;
    std::array<int, 2> ending{};
    MPI_Recv(ending.data(), 2, MPI_INT, status.MPI_SOURCE, kEnding, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (ending[0] != 0) final_status = ending[0];
    return {{status.MPI_SOURCE, {ending[0], ending[1] != 0}}};
  }

 private:
  struct Request {
    MPI_Request handle = MPI_REQUEST_NULL;
    int peer = 0;
    bool sends = false;
  };

  // Calls f for parts whose sizes an int can count.
  template <class T, class F>
  static void each_part(std::span<T> bytes, const F& f) {
    constexpr std::size_t kMax = INT_MAX;
    for (std::size_t at = 0; at < bytes.size(); at += kMax)
      f(bytes.subspan(at, std::min(kMax, bytes.size() - at)));
  }

  MPI_Request& add(int peer, bool sends) {
    pending_.push_back({.handle = MPI_REQUEST_NULL, .peer = peer, .sends = sends});
    return pending_.back().handle;
  }

  // Binds the ranks of this machine to cores of their own each, as far as there are enough, unless the launcher has.
  void share_cores() {
    MPI_Comm machine = MPI_COMM_NULL;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank(), MPI_INFO_NULL, &machine);
    int ranks = 1;
    MPI_Comm_size(machine, &ranks);
    cpu_set_t mine, all;
    CPU_ZERO(&mine);
    const bool known = ::sched_getaffinity(0, sizeof mine, &mine) == 0;
    MPI_Allreduce(&mine, &all, sizeof mine, MPI_BYTE, MPI_BOR, machine);
    int index = 0;
    MPI_Comm_rank(machine, &index);
    MPI_Comm_free(&machine);
    const int share = std::max(1, CPU_COUNT(&all) / ranks);
    if (!known || CPU_COUNT(&mine) <= share) return;
    cpu_set_t part;
    CPU_ZERO(&part);
    for (int cpu = 0, n = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &mine) && n++ / share == index % (CPU_COUNT(&mine) / share)) CPU_SET(cpu, &part);
    ::sched_setaffinity(0, sizeof part, &part);
  }

  std::vector<Request> pending_;
  std::array<int, 2> ending_{};
};

}  // namespace

std::unique_ptr<Communicator> start_mpi(double timeout) {
  int provided = 0, rank = 0, size = 1;
  std::signal(SIGALRM, on_timeout);
  ::alarm(static_cast<unsigned>(std::ceil(std::min<double>(timeout, INT_MAX))));
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  ::alarm(0);
  require<ConfigError>(provided >= MPI_THREAD_SERIALIZED,
                       "{}: does not permit calls of several threads; use an MPI library that does",
                       mpi_name());
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return std::make_unique<Mpi>(rank, size);
}

std::string mpi_name() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  const std::string_view whole(text.data(), static_cast<std::size_t>(length));
  return std::string(whole.substr(0, whole.find_first_of(",\n")));
}

}  // namespace thimble
