/* Naive attention in float on golden files: reads the .npy files of a case, writes out.npy and lse.npy.
 *
 *     attention CASE OUTPUTS MASK
 *
 * CASE is a folder that holds query.npy, key.npy and value.npy (float32); OUTPUTS a folder that exists. MASK is "none",
 * "bottom-right" (query i sees key j where j <= i + m - n) or "top-left" (j <= i). Heads of queries are grouped in order.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    long shape[4];
    float *data;
} Tensor;

static void die(const char *what, const char *path)
{
    fprintf(stderr, "%s: %s\n", path, what);
    exit(2);
}

/* The four sizes in the header of a .npy file, which is a Python dictionary as text. */
static void read_shape(const char *header, long *shape, const char *path)
{
    const char *at = strstr(header, "'shape': (");
    if (!strstr(header, "'descr': '<f4'") || !strstr(header, "'fortran_order': False") || !at)
        die("not a float32 array in C order", path);
    if (sscanf(at, "'shape': (%ld, %ld, %ld, %ld", shape, shape + 1, shape + 2, shape + 3) != 4)
        die("not four axes", path);
}

static Tensor read_npy(const char *folder, const char *name)
{
    char path[4096], header[4096];
    unsigned char start[10];
    Tensor t;
    snprintf(path, sizeof path, "%s/%s.npy", folder, name);
    FILE *file = fopen(path, "rb");
    if (!file || fread(start, 1, 10, file) != 10 || memcmp(start, "\x93NUMPY\x01", 7))
        die("cannot be read", path);
    size_t length = start[8] + 256 * (size_t)start[9];
    if (length >= sizeof header || fread(header, 1, length, file) != length)
        die("truncated", path);
    header[length] = 0;
    read_shape(header, t.shape, path);
    size_t count = (size_t)(t.shape[0] * t.shape[1] * t.shape[2] * t.shape[3]);
    t.data = malloc(count * sizeof(float));
    if (!t.data || fread(t.data, sizeof(float), count, file) != count)
        die("truncated", path);
    fclose(file);
    return t;
}

static void write_npy(const char *folder, const char *name, const long *shape, int axes, const float *data)
{
    char path[4096], text[256] = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
    size_t count = 1;
    for (int k = 0; k < axes; k++) {
        count *= (size_t)shape[k];
        snprintf(text + strlen(text), sizeof text - strlen(text), "%ld,", shape[k]);
    }
    strcat(text, "), }");
    while ((10 + strlen(text) + 1) % 64)
        strcat(text, " ");
    strcat(text, "\n");
    snprintf(path, sizeof path, "%s/%s.npy", folder, name);
    FILE *file = fopen(path, "wb");
    if (!file)
        die("cannot be written", path);
    unsigned char start[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)strlen(text), 0};
    fwrite(start, 1, 10, file);
    fwrite(text, 1, strlen(text), file);
    fwrite(data, sizeof(float), count, file);
    if (fclose(file))
        die("cannot be written", path);
}

static float score(const float *q, const float *k, long d, float scale)
{
    float sum = 0;
    for (long c = 0; c < d; c++)
        sum += q[c] * k[c];
    return sum * scale;
}

/* One row: `seen` keys; the output into `out`, the log-sum-exp returned. */
static float row(const float *q, const float *key, const float *value, long seen, long d, long dv, float *out, float *weights)
{
    float top = -INFINITY, total = 0, scale = 1 / sqrtf((float)d);
    for (long j = 0; j < seen; j++) {
        weights[j] = score(q, key + j * d, d, scale);
        if (weights[j] > top)
            top = weights[j];
    }
    for (long j = 0; j < seen; j++)
        total += weights[j] = expf(weights[j] - top);
    for (long e = 0; e < dv; e++) {
        float sum = 0;
        for (long j = 0; j < seen; j++)
            sum += weights[j] * value[j * dv + e];
        out[e] = total > 0 ? sum / total : 0;
    }
    return total > 0 ? logf(total) + top : -INFINITY;
}

int main(int count, char **words)
{
    if (count != 4)
        die("usage: attention CASE OUTPUTS none|bottom-right|top-left", words[0]);
    Tensor q = read_npy(words[1], "query"), k = read_npy(words[1], "key"), v = read_npy(words[1], "value");
    long heads = q.shape[1], kv = k.shape[1], n = q.shape[2], m = k.shape[2], d = q.shape[3], dv = v.shape[3];
    float *out = malloc(sizeof(float) * (size_t)(q.shape[0] * heads * n * dv));
    float *lse = malloc(sizeof(float) * (size_t)(q.shape[0] * heads * n));
    float *weights = malloc(sizeof(float) * (size_t)m);
    long offset = strcmp(words[3], "bottom-right") ? 0 : m - n;
    for (long bh = 0; bh < q.shape[0] * heads; bh++) {
        long of = bh / heads * kv + bh % heads / (heads / kv);
        for (long i = 0; i < n; i++) {
            long seen = strcmp(words[3], "none") ? i + 1 + offset : m;
            seen = seen < 0 ? 0 : seen > m ? m : seen;
            lse[bh * n + i] = row(q.data + (bh * n + i) * d, k.data + of * m * d, v.data + of * m * dv, seen, d, dv,
                                  out + (bh * n + i) * dv, weights);
        }
    }
    long shape[4] = {q.shape[0], heads, n, dv};
    write_npy(words[2], "out", shape, 4, out);
    write_npy(words[2], "lse", shape, 3, lse);
    return 0;
}
