/* A row: numbers and codes of categories, or pairs of columns and values. */
struct row {
    const double *numbers;
    const int64_t *codes;
    const int64_t *columns;
    const double *values;
    int64_t entries;
};

/* Return the position of a key in a sorted list, or -1. */
static int64_t find_key(const int64_t *sorted, int64_t count, int64_t key)
{
    int64_t low = 0, high = count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (sorted[middle] < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && sorted[low] == key ? low : -1;
}
