/* Trees: the children of split j are the nodes trees + 2 j and trees + 2 j + 1. */
struct trees_R {
    int trees;
    const int32_t *link; /* the left child of a node, or -1 - leaf */
    const uint32_t *cell; /* 4 times the cell of a split, plus 2 for a category, 1 for a missing
                             number that goes right */
    const real *threshold, *value;
};

/* Set the cells that splits read, which are 0; `feature` has 2 j for column j, 2 j + 1 for codes. */
static void load_cells_R(const struct row *row, int64_t mask, const int64_t *feature, int count,
                         real *cell)
{
    for (int c = 0; c < count; c++) {
        int64_t j = feature[c] / 2;
        if (feature[c] % 2)
            cell[c] = row->codes[j] >= 0 ? (real)(row->codes[j] & 0xFFFFFF) : -1;
        else if (NUMBERS > 0)
            cell[c] = (real)row->numbers[j];
    }
    for (int64_t e = 0; e < row->entries; e++) {
        real x = (real)row->values[e];
        int64_t c = row->columns[e] < 0 ? -1 : find_key(feature, count, 2 * (row->columns[e] & mask));
        if (c >= 0 && x != 0)
            cell[c] = x;
    }
}

static void predict_trees_R(const struct trees_R *t, const real *cell, real *h)
{
    for (int i = 0; i < t->trees; i++) {
        int32_t link = t->link[i];
        while (link >= 0) {
            int32_t split = (link - t->trees) / 2;
            uint32_t where = t->cell[split];
            real x = cell[where / 4], threshold = t->threshold[split];
            int right;
            if (where & 2)
                right = x != threshold;
            else if (x != x)
                right = (where & 1) && threshold < (real)INFINITY;
            else
                right = x > threshold;
            link = t->link[link + right];
        }
        for (int k = 0; k < OUTPUTS; k++)
            h[k * t->trees + i] = t->value[(-1 - link) * OUTPUTS + k];
    }
}
