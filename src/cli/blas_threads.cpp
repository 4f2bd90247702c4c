// OpenBLAS starts a thread for every core as soon as it is loaded, before main, and ends the program when the
// system refuses one. This function of OpenBLAS, which reads OPENBLAS_NUM_THREADS, is replaced by one that
// asks for none: the threads of this program are those of core/thread_pool.h.
extern "C" {

int openblas_num_threads_env();

int openblas_num_threads_env() { return 1; }
}
