/* Replays files and folders of inputs through a fuzz target, for compilers without libFuzzer. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    uint8_t *data = NULL;
    size_t size = 0, capacity = 0, n;
    if (!f) return perror(path), 1;
    do {
        if (size == capacity) {
            capacity = capacity ? 2 * capacity : 4096;
            uint8_t *bigger = realloc(data, capacity);
            if (!bigger) return perror(path), 1;
            data = bigger;
        }
        n = fread(data + size, 1, capacity - size, f);
        size += n;
    } while (n);
    fclose(f);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    return 0;
}

static int replay(const char *path)
{
    struct stat s;
    if (stat(path, &s)) return perror(path), 1;
    if (!S_ISDIR(s.st_mode)) return replay_file(path);
    DIR *d = opendir(path);
    if (!d) return perror(path), 1;
    int failed = 0, n = 0;
    for (const struct dirent *entry; (entry = readdir(d));) {
        char file[4096];
        if (entry->d_name[0] == '.') continue;
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        failed |= replay_file(file);
        n++;
    }
    closedir(d);
    printf("%s: %d inputs\n", path, n);
    return failed || !n;
}

int main(int argc, char **argv)
{
    int failed = argc < 2;
    for (int i = 1; i < argc; i++) failed |= replay(argv[i]);
    return failed;
}
