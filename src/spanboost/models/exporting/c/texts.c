struct text {
    const char *text;
    int64_t number;
};

/* Return the number of a text in a sorted list, or -1. */
static int64_t find_text(const struct text *sorted, int64_t count, const char *text)
{
    int64_t low = 0, high = count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        int order = strcmp(sorted[middle].text, text);
        if (order == 0)
            return sorted[middle].number;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}
