// OpenBLAS starts a thread for every core when it is loaded, before main, and ends the program when the
// system refuses one. This replaces its function that reads OPENBLAS_NUM_THREADS by one that returns 1: the
// threads of this program are those of files/thread_pool.h.
extern "C" {

int openblas_num_threads_env();

int openblas_num_threads_env() { return 1; }
}
