// Measures OpenBLAS on the products of BenchmarkMul, in the format of Go's benchmarks:
//
//	cc -O2 -o openblas openblas.c -lopenblas && OPENBLAS_NUM_THREADS=1 ./openblas
//
// An OpenBLAS that is older than the processor takes it for an ancient one; OPENBLAS_CORETYPE=SkylakeX or Haswell helps.
#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

char *openblas_get_corename(void);

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + 1e-9 * t.tv_nsec;
}

static float *matrix(long n) {
	float *m = aligned_alloc(64, (4 * n + 63) / 64 * 64);
	for (long i = 0; i < n; i++)
		m[i] = rand() * 2.0f / RAND_MAX - 1;
	return m;
}

int main(int argc, char **argv) {
	static const int sizes[][3] = {
		{150, 1536, 160}, {150, 160, 1536}, {64, 512, 512}, {70, 6008, 256}, {206, 768, 96}, {206, 96, 768},
		{1, 4096, 512}, {3, 4096, 256}, {8, 4096, 512}, {24, 4096, 256}, {1024, 1024, 1024},
	};
	double seconds = argc > 1 ? atof(argv[1]) : 0.2;
	for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
		int m = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
		float *x = matrix((long)m * k), *w = matrix((long)n * k), *y = matrix((long)m * n);
		double begin = now(), best = 1e9;
		int runs = 0;
		do {
			double t = now();
			cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, k, 1, x, k, w, k, 0, y, n);
			t = now() - t;
			if (t < best)
				best = t;
			runs++;
		} while (runs < 3 || now() - begin < seconds);
		double mean = (now() - begin) / runs, flop = 2.0 * m * n * k;
		printf("BenchmarkMul/%s/%dx%dx%d\t%d\t%.0f ns/op\t%.2f GFLOP/s\t%.2f best-GFLOP/s\n",
			openblas_get_corename(), m, n, k, runs, mean * 1e9, flop / mean * 1e-9, flop / best * 1e-9);
		fflush(stdout);
		free(x), free(w), free(y);
	}
}
